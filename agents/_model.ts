/** A model of a server with OpenAI's interface. */
export interface Model {
  readonly baseURL: string;
  readonly apiKey: string;
  readonly name: string;
  /** Where it runs, for a person. */
  readonly place: string;
}

/** What is missing, in a sentence for the user. */
export interface Missing {
  readonly missing: string;
}

export const localOllama = 'http://127.0.0.1:11434';

/** Milliseconds to look for Ollama on this computer. */
const lookUpTime = 500;

const orSet = 'or set OPENAI_BASE_URL, and OPENAI_API_KEY and OPENAI_MODEL as that server wants them';

/**
 * The model that the variables `OPENAI_BASE_URL`, `OPENAI_API_KEY` and `OPENAI_MODEL` name. Without a URL it is the
 * first model of the Ollama on this computer.
 */
export async function findModel(env: NodeJS.ProcessEnv, ollama = localOllama): Promise<Model | Missing> {
  const apiKey = env.OPENAI_API_KEY || 'none';
  if (env.OPENAI_BASE_URL) {
    const name = env.OPENAI_MODEL || 'llama3.2';
    return { baseURL: env.OPENAI_BASE_URL, apiKey, name, place: hostOf(env.OPENAI_BASE_URL) };
  }
  const names = await modelsOf(ollama);
  if (names === undefined) return { missing: `It needs a language model: start Ollama at ${ollama}, ${orSet}.` };
  const name = env.OPENAI_MODEL || names[0];
  if (name === undefined) return { missing: `Ollama has no model yet: run "ollama pull llama3.2", ${orSet}.` };
  return { baseURL: `${ollama}/v1`, apiKey, name, place: 'the Ollama of this computer' };
}

/** The names of an Ollama's models; undefined if none answers in time. */
async function modelsOf(ollama: string): Promise<string[] | undefined> {
  try {
    const response = await fetch(`${ollama}/api/tags`, { signal: AbortSignal.timeout(lookUpTime) });
    const body: unknown = await response.json();
    if (typeof body !== 'object' || body === null || !('models' in body) || !Array.isArray(body.models))
      return undefined;
    return body.models.map(({ name }) => name).filter((name) => typeof name === 'string');
  } catch {
    return undefined;
  }
}

const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).host : url);
