import { Violation } from './ledger.ts';
import type { World } from './world.ts';

/** A request's answer, and which start of the server gave it. */
export interface Answer {
  readonly life: number;
  readonly response: Response;
}

export interface Frame {
  readonly id: number;
  readonly line: string;
}

export interface Sent {
  readonly body?: object;
  readonly headers?: Record<string, string>;
}

/** Requests when there is a server. @throws Cut where it went down meanwhile */
export async function request(world: World, path: string, { body, headers = {} }: Sent = {}): Promise<Answer> {
  await world.ready();
  const { life } = world;
  try {
    const response = await fetch(`${world.url}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    if (response.status === 503) throw new Error(`${path} was refused: ${await response.text()}`);
    return { life, response };
  } catch (error) {
    throw world.broken(life, error);
  }
}

/** The body as text, whole. @throws Cut */
export async function text(world: World, { life, response }: Answer): Promise<string> {
  try {
    return await response.text();
  } catch (error) {
    throw world.broken(life, error);
  }
}

/** The JSON of a path that has to be there. @throws Cut, Violation */
export async function get<T>(world: World, path: string): Promise<T> {
  const answer = await request(world, path);
  const body = await text(world, answer);
  if (answer.response.status !== 200) throw new Violation(`GET ${path} answered ${answer.response.status}: ${body}`);
  return JSON.parse(body);
}

/** An answer that nobody expects. */
export async function unexpected(world: World, what: string, answer: Answer): Promise<Violation> {
  return new Violation(`${what} answered ${answer.response.status}: ${await text(world, answer)}`);
}

/**
 * The frames of a stream as they come; ids have to follow one another, from `after` on where it is given.
 * Letting go of the iterator lets go of the stream. @throws Cut, Violation
 */
export async function* frames(world: World, { life, response }: Answer, after?: number): AsyncGenerator<Frame, void> {
  let last = after;
  for await (const block of blocks(world, life, response)) {
    const [, id, line] = /^(?::\n)*(?:retry: \d+\n)?id: (\d+)\ndata: (.*)$/.exec(block) ?? [];
    if (id === undefined || line === undefined) {
      throw new Violation(`a stream had the frame ${block}`);
    }
    if (last !== undefined && Number(id) !== last + 1)
      throw new Violation(`a stream had event ${id} after event ${last}: ${line}`);
    last = Number(id);
    yield { id: last, line };
  }
}

// What was cut in the middle of a frame is no frame.
async function* blocks(world: World, life: number, { body }: Response): AsyncGenerator<string, void> {
  const reader = (body ?? new ReadableStream<Uint8Array>()).getReader();
  const decoder = new TextDecoder();
  let left = '';
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((error: unknown) => {
        throw world.broken(life, error);
      });
      if (done) break;
      const whole = (left + decoder.decode(value, { stream: true })).split('\n\n');
      left = whole.pop() ?? '';
      yield* whole;
    }
    if (!/^(:\n|retry: \d+\n)*$/.test(left)) throw new Violation(`a stream ended in the middle of a frame: ${left}`);
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
