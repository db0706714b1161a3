import { defer, finalize, type Observable } from 'rxjs';
import type { AgentContext, AgentLog, AgentOutput, AgentSession, AwaitOptions } from '../core/agent.ts';
import { checkContentTypes } from '../core/content-type.ts';
import { fail } from '../core/errors.ts';
import { fromAgent, type Source } from '../core/from-agent.ts';
import { receiveMessage, textMessage } from '../core/messages.ts';
import type { Message, MessageInput } from '../schema/message.ts';
import type { AwaitRequest, AwaitResume } from '../schema/run.ts';
import { Abort } from './abort.ts';
import type { Registry } from './registry.ts';
import type { Steps } from './steps.ts';

/** What a context needs of the execution that it belongs to. */
export interface ContextHost {
  readonly run_id: string;
  readonly registry: Registry;
  readonly logFor: (run_id: string) => AgentLog;
  readonly source: Source;
  /** In a durable run. */
  readonly steps: Steps | undefined;
  /** Milliseconds until an await that nobody answers ends the run; zero for never. */
  readonly awaitTime: number;
  readonly now: () => string;
  /** The same one each time. */
  session(): AgentSession;
  ask(request: AwaitRequest): Observable<AwaitResume>;
  use(tokens: number): void;
}

const maxDepth = 16;

/**
 * The context of an agent, or of one that it called: same run, same session, its own name and signal. What few agents
 * ask for is made when they do. A plain object, so that an agent may copy it, or take what it needs out of it.
 */
export function createContext(host: ContextHost, agent_name: string, abort: Abort, depth = 0): AgentContext {
  let log: AgentLog | undefined;
  return {
    run_id: host.run_id,
    agent_name,
    get signal() {
      return abort.signal;
    },
    get session() {
      return host.session();
    },
    get log() {
      log ??= host.logFor(host.run_id);
      return log;
    },
    await: (request, options) => defer(() => host.ask(awaitRequest(host, agent_name, request, options))),
    step: (name, work, again) =>
      host.steps === undefined ? defer(() => fromAgent(work(), host.source)) : host.steps.step(name, work, again),
    call: (agent, input) => call(host, agent, input, abort, depth),
    usage: ({ tokens }) => {
      if (!Number.isFinite(tokens) || tokens < 0)
        throw new RangeError(`usage: tokens has to be 0 or more, got ${tokens}`);
      host.use(tokens);
    },
  };
}

// The callee's output is its caller's: it joins the same run, and unsubscribing is what cancels it.
function call(
  host: ContextHost,
  name: string,
  input: string | Message | readonly Message[],
  caller: Abort,
  depth: number,
): Observable<AgentOutput> {
  return defer(() => {
    if (depth >= maxDepth) throw fail('call_depth', maxDepth);
    const agent = host.registry.get(name);
    const abort = new Abort();
    const cascade = (): void => abort.abort(caller.reason ?? 'its caller is over');
    const parent = caller.signal;
    parent.addEventListener('abort', cascade);
    if (parent.aborted) cascade();
    const context = createContext(host, name, abort, depth + 1);
    const messages = received(input, host.now());
    checkContentTypes(name, agent.manifest.input_content_types ?? ['*/*'], messages);
    return defer(() => fromAgent(agent.run(messages, context), host.source)).pipe(
      finalize(() => {
        parent.removeEventListener('abort', cascade);
        abort.abort(`the call of ${name} is over`);
      }),
    );
  });
}

/** What a caller hands over, completed and checked as what a client sends is. */
function received(input: string | Message | readonly Message[], now: string): Message[] {
  if (typeof input === 'string') return [textMessage('user', input, now)];
  const messages = 'parts' in input ? [input] : input;
  return messages.map((message, index) => receiveMessage(sent(message), `input[${index}]`, now));
}

/** A message as a client would send it: one that is not complete has no time of completion, rather than null. */
const sent = (message: Message): MessageInput => ({ ...message, completed_at: message.completed_at ?? undefined });

function awaitRequest(
  { now, awaitTime }: ContextHost,
  agent_name: string,
  request: string | Message | AwaitRequest,
  { schema, expires_in }: AwaitOptions = {},
): AwaitRequest {
  const role = `agent/${agent_name}`;
  const { message, ...rest } =
    typeof request === 'string'
      ? { type: 'message' as const, message: textMessage(role, request, now()) }
      : 'message' in request
        ? request
        : { type: 'message' as const, message: request };
  const time = expires_in === undefined ? awaitTime : expires_in * 1000;
  return {
    ...rest,
    message: { ...receiveMessage(sent(message), 'await.message', now()), role },
    ...(schema !== undefined && { schema }),
    ...(time > 0 && { expires_at: new Date(Date.now() + time).toISOString() }),
  };
}
