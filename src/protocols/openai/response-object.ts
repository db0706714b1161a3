import type { CutOff } from '../../core/cut-off.ts';
import { toLine } from '../../core/encode.ts';
import type { AgentRequest } from '../../core/request.ts';
import type { RunUsage } from '../../schema/run.ts';
import type { responseError } from './errors.ts';

// A response as its object, in answers and in the first and last frames of its stream.

export type ResponseStatus = 'queued' | 'in_progress' | 'completed' | 'incomplete' | 'failed' | 'cancelled';

/** What changes while a response is made. */
export interface ResponseProgress {
  readonly id: string;
  /** The id of the response before it, of the same run. */
  readonly previous: string | undefined;
  /** Seconds since 1970, as OpenAI's times are. */
  readonly created_at: number;
  readonly completed_at: number | undefined;
  readonly status: ResponseStatus;
  /** Why it is `incomplete`. */
  readonly cutOff?: CutOff | undefined;
  readonly model: string;
  /** The finished items, as the inside of a JSON list. */
  readonly output: string;
  readonly usage: RunUsage | undefined;
  readonly error: ReturnType<typeof responseError> | undefined;
}

export const isOver = ({ status }: ResponseProgress): boolean => status !== 'in_progress' && status !== 'queued';

/** What the answers repeat of a request: JSON of the same fields for each. */
export interface Echo {
  readonly previous: string | null;
  readonly background: boolean;
  /** The names of the client's tools. */
  readonly tools: readonly string[];
  readonly fields: string;
}

export const seconds = (time: string): number => Math.floor(Date.parse(time) / 1000);

export function echoOf({ instructions, metadata = {}, tools = [], conversation }: AgentRequest): Echo {
  const given = (name: string, otherwise: unknown): unknown => metadata[name] ?? otherwise;
  const previous = metadata.previous_response_id;
  const background = metadata.background === true;
  const fields = {
    instructions: instructions ?? null,
    metadata: given('metadata', {}),
    temperature: given('temperature', 1),
    top_p: given('top_p', 1),
    presence_penalty: given('presence_penalty', 0),
    frequency_penalty: given('frequency_penalty', 0),
    top_logprobs: given('top_logprobs', 0),
    max_output_tokens: given('max_output_tokens', null),
    max_tool_calls: given('max_tool_calls', null),
    parallel_tool_calls: given('parallel_tool_calls', true),
    reasoning: given('reasoning', { effort: null, summary: null }),
    text: given('text', { format: { type: 'text' } }),
    tool_choice: given('tool_choice', 'auto'),
    tools: tools.map(({ name, description = null, parameters = null }) => {
      return { type: 'function', name, description, parameters, strict: null };
    }),
    truncation: given('truncation', 'disabled'),
    store: given('store', true),
    service_tier: given('service_tier', 'default'),
    safety_identifier: given('safety_identifier', null),
    prompt_cache_key: given('prompt_cache_key', null),
    user: given('user', null),
    background,
    ...(conversation !== undefined && { conversation: { id: conversation } }),
  };
  return {
    previous: typeof previous === 'string' ? previous : null,
    background,
    tools: tools.map(({ name }) => name),
    fields: toLine(fields).slice(1, -1),
  };
}

const reasons: Readonly<Record<CutOff, string>> = {
  length: 'max_output_tokens',
  content_filter: 'content_filter',
  cancelled: 'cancelled',
  failed: 'failed',
};

/** The response as JSON. */
export function responseObject(echo: Echo, response: ResponseProgress): string {
  const { id, previous, created_at, completed_at, status, cutOff, model, output, usage, error } = response;
  const head = toLine({
    id,
    object: 'response',
    created_at,
    completed_at: completed_at ?? null,
    status,
    model,
    previous_response_id: previous ?? echo.previous,
    error: error ?? null,
    // Some clients read no status, and take a response without a reason for a complete one.
    incomplete_details: status === 'cancelled' ? { reason: status } : cutOff ? { reason: reasons[cutOff] } : null,
    usage: usage === undefined ? null : usageOf(usage),
  });
  return `${head.slice(0, -1)},"output":[${output}],${echo.fields}}`;
}

/** Where the agent reports only a sum, it counts as output. */
export function countsOf({ tokens, input_tokens = 0, output_tokens = tokens - input_tokens }: RunUsage) {
  return { input: input_tokens, output: Math.max(0, output_tokens), total: tokens };
}

function usageOf(usage: RunUsage) {
  const { input, output, total } = countsOf(usage);
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: total,
  };
}
