import { Type } from '@sinclair/typebox';
import { GenericEvent } from '../schema/event.ts';
import { utcOf } from '../schema/formats.ts';
import { type Message, MessageInput, type MessagePart, MessagePartInput } from '../schema/message.ts';
import { AwaitRequest } from '../schema/run.ts';
import type { AgentOutput, AwaitOptions } from './agent.ts';
import { fail, RivuletError } from './errors.ts';
import { isObject, NotJson, toJson } from './json.ts';
import { expectedTime, partProblem, receiveMessage, textMessage } from './messages.ts';
import { compile } from './validate.ts';

/** A checked copy of one emission of an agent that is not a text. */
export type Emission = GenericEvent | { readonly part: MessagePart } | { readonly whole: Message };

/** Limits of one emission. The recorder limits the whole output of a run. */
const limits = { values: 1_000_000, chars: 256 * 1024 * 1024, wellFormed: true };
/** Milliseconds: a hundred years. */
const longestWait = 100 * 366 * 24 * 3_600_000;

const checks = {
  part: compile(MessagePartInput, 'part'),
  message: compile(MessageInput, 'message'),
  generic: compile(GenericEvent, 'generic'),
  asked: compile(MessageInput, 'await.message'),
  given: compile(Type.Array(MessageInput), 'input'),
  schema: compile(AwaitRequest.properties.schema, 'await.schema'),
  tool: compile(AwaitRequest.properties.tool, 'await.tool'),
};

/** @throws RivuletError `output_invalid` that names the agent and the field */
export const checkOutput = (agent: string, output: unknown, now: string): Emission =>
  named('output_invalid', agent, () => {
    if (typeof output !== 'object') throw misplaced(typeof output);
    const data = copyOf(output, 'output');
    if (!isObject(data)) throw misplaced(kindOf(output, data));
    if ('generic' in data && data.type === 'generic') {
      // Other fields are left out: an event with a `run` or a `part` is of another type.
      const { type, generic } = checks.generic(data);
      return { type, generic };
    }
    if ('parts' in data) {
      const message = receiveMessage(checks.message(data), 'message', now);
      // A called agent's message keeps its role. Only the message decides, so that a replay decides alike.
      return { whole: message.role.startsWith('agent/') ? message : { ...message, role: `agent/${agent}` } };
    }
    const part = checks.part(data);
    const problem = isEmpty(data) ? 'an object with no field of a part or message' : partProblem(part);
    if (problem !== undefined) throw fail('validation_failed', 'output', problem);
    return { part: { content_type: 'text/plain', ...part } };
  });

/**
 * Checks the output of a called agent. A whole message gets the called agent's role, unless it names an agent already.
 * @throws RivuletError `output_invalid` that names the called agent
 */
export function checkCalled(agent: string, output: AgentOutput, now: string): AgentOutput {
  // Tokens are the hot path, and need no check.
  if (typeof output === 'string' || output === undefined) return output;
  const emission = checkOutput(agent, output, now);
  if ('part' in emission) return emission.part;
  return 'whole' in emission ? emission.whole : emission;
}

/**
 * The await request as the run shows it. `awaitTimeout`: milliseconds until an await without a reply fails the run; 0 for
 * never.
 * @throws RivuletError `await_invalid` that names the field
 */
export const checkAwait = (
  agent: string,
  request: unknown,
  { schema, expiresIn, tool }: AwaitOptions<object>,
  { now, awaitTimeout }: { now: string; awaitTimeout: number },
): AwaitRequest =>
  named('await_invalid', agent, () => {
    const given =
      typeof request === 'string' ? textMessage('agent', request.toWellFormed(), now) : copyOf(request, 'await');
    if (!isObject(given)) throw fail('validation_failed', 'await', 'expected a text, a message or an await request');
    const {
      message,
      expires_at,
      schema: own,
      tool: ownTool,
      ...rest
    } = 'message' in given ? given : { message: given };
    const received = receiveMessage(checks.asked(message), 'await.message', now);
    const wanted = schema === undefined ? own : copyOf(schema, 'await.schema');
    const asks = tool === undefined ? ownTool : copyOf(tool, 'await.tool');
    const ends = endOf(expiresIn, expires_at, { now, awaitTimeout });
    return {
      ...rest,
      type: 'message',
      message: { ...received, role: `agent/${agent}` },
      ...(wanted !== undefined && { schema: checks.schema(wanted) }),
      ...(asks !== undefined && { tool: checks.tool(asks) }),
      ...(ends !== undefined && { expires_at: ends }),
    };
  });

/**
 * Checks and completes the input of a call, as the input of a client's run.
 * @throws RivuletError `output_invalid` that names the field
 */
export const checkCall = (agent: string, input: unknown, now: string): Message[] =>
  named('output_invalid', agent, () => {
    if (typeof input === 'string') return [textMessage('user', input.toWellFormed(), now)];
    const data = copyOf(input, 'input');
    const messages = checks.given(Array.isArray(data) ? data : [data]);
    return messages.map((message, index) => receiveMessage(message, `input[${index}]`, now));
  });

function endOf(
  expiresIn: number | undefined,
  expires_at: unknown,
  { now, awaitTimeout }: { now: string; awaitTimeout: number },
): string | undefined {
  if (expiresIn === undefined && typeof expires_at === 'string') {
    const utc = utcOf(expires_at);
    if (utc === undefined) throw fail('validation_failed', 'await.expires_at', expectedTime(expires_at));
    return new Date(utc).toISOString();
  }
  if (expiresIn !== undefined && !(Number.isFinite(expiresIn) && expiresIn > 0 && expiresIn <= longestWait)) {
    const got = typeof expiresIn === 'number' ? expiresIn : typeof expiresIn;
    throw fail(
      'validation_failed',
      'await.expiresIn',
      `expected more than 0 and at most ${longestWait} milliseconds, got ${got}`,
    );
  }
  const time = expiresIn ?? awaitTimeout;
  return time > 0 ? new Date(Date.parse(now) + time).toISOString() : undefined;
}

function named<T>(kind: 'output_invalid' | 'await_invalid', agent: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof RivuletError && error.kind === 'validation_failed')) throw error;
    throw fail(kind, agent, error.message.replace(/\.$/, ''));
  }
}

// A JSON copy, in which all texts are well-formed: the agent may change its object later.
function copyOf(value: unknown, where: string): unknown {
  try {
    return toJson(value, limits);
  } catch (error) {
    if (!(error instanceof NotJson)) throw error;
    throw fail('validation_failed', error.pathIn(where), error.problem);
  }
}

const kindOf = (output: unknown, data: unknown): string => {
  if (output === null) return 'null';
  if (Array.isArray(output)) return 'an array';
  return output instanceof Date ? 'a Date' : `an object that JSON writes as ${data}`;
};

const misplaced = (kind: string): RivuletError =>
  fail('validation_failed', 'output', `got ${kind}, not text, a part or a message`);

const partFields = Object.keys(MessagePartInput.properties);
const isEmpty = (data: object): boolean => !partFields.some((field) => field in data);
