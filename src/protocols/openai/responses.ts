import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply } from 'fastify';
import { fail, RivuletError } from '../../core/errors.ts';
import type { Access } from '../../engine/access.ts';
import { sessionIdFor } from '../../engine/ids.ts';
import type { AcceptedRun, RunOptions } from '../../engine/runs/create.ts';
import { onceClosed } from '../../http/requests/once-closed.ts';
import { nameRun, sendJson } from '../../http/requests/respond.ts';
import { runOptions } from '../../http/requests/run-requests.ts';
import { after } from '../../http/sse/projection.ts';
import { RunHeaders } from '../../schema/api.ts';
import type { ProtocolOptions } from '../protocol.ts';
import { answerCall } from './answers.ts';
import { errorFrame } from './errors.ts';
import { placeOfCall, responseId, runOfItem } from './ids.ts';
import type { Item } from './items.ts';
import { responseObject } from './response-object.ts';
import { type AskedResponse, ResponseRequest, readResponseRequest, referencesIn } from './responses-request.ts';
import { projectedRun, projectedWith, readItems, readResponse, type StoredResponse } from './stored-responses.ts';

/** Creates responses: new runs, and the answers to what runs await. */
export const responseCreation: FastifyPluginAsyncTypebox<ProtocolOptions> = async (app, { access, responder }) => {
  app.post(
    '/responses',
    {
      config: { scope: 'runs:write', work: 'creates' },
      schema: { hide: true, headers: RunHeaders, body: ResponseRequest },
    },
    async (request, reply) => {
      const { body } = request;
      const own = access(request);
      const known = await itemsOf(own, referencesIn(body), request.routeOptions.bodyLimit);
      const asked = readResponseRequest(body, known);
      const isStream = body.stream === true;
      responder.admit(own, isStream ? 'stream' : 'sync');
      const begun = await begin(own, body, asked, runOptions(request.headers));
      const { run_id } = begun;
      nameRun(reply, run_id);
      // A client that repeats the request would make another run.
      reply.header('x-should-retry', 'false');
      const { echo, projection } = begun.isNew ? projectedWith(asked.request) : await projectedRun(own, run_id);
      if (body.store === false && body.background !== true) removeAfter(reply, own, run_id);
      if (isStream) {
        const from = after(begun.after);
        return responder.project(reply, own, run_id, { projection, from, interrupted: errorFrame });
      }
      if (body.background === true) {
        return sendJson(reply, (await readResponse(own, responseId(begun))).object);
      }
      const { response } = await responder.settledState(reply, own, run_id, projection, { after: begun.after });
      if (response === undefined) throw fail('log_damaged', run_id);
      return sendJson(reply, responseObject(echo, response));
    },
  );
};

/** Logs that the references of one request may name: each is read for it. */
const maxReferencedRuns = 1_000;

/**
 * The items that a request refers to, and that its caller may see; each run is read once. Each reference repeats its item in
 * the new run, which may get no longer by it than by a body. @throws RivuletError `references_too_large`, `read_too_large`
 */
async function itemsOf(own: Access, ids: readonly string[], limit: number): Promise<Map<string, Item>> {
  const items = new Map<string, Item>();
  const runs = new Set(ids.flatMap((id) => runOfItem(id) ?? []));
  for (const run_id of [...runs].slice(0, maxReferencedRuns)) {
    try {
      await readItems(own, run_id, items);
    } catch (error) {
      // Its items are unknown, then.
      if (!(error instanceof RivuletError && error.code === 'not_found')) throw error;
    }
  }
  const sizes = new Map<string, number>();
  let chars = 0;
  for (const id of ids) {
    const item = items.get(id);
    const size = sizes.get(id) ?? (item === undefined ? 0 : JSON.stringify(item).length);
    sizes.set(id, size);
    chars += size;
  }
  if (chars > limit) throw fail('references_too_large', limit);
  return items;
}

interface BegunRun extends AcceptedRun {
  /** Whether the request has made the run; otherwise it has resumed it. */
  readonly isNew: boolean;
}

/** Resumes the run that waits for the answer of a request, or else makes one. */
async function begin(
  own: Access,
  { model, previous_response_id }: ResponseRequest,
  asked: AskedResponse,
  options: RunOptions,
): Promise<BegunRun> {
  const { messages, request, conversation, answer } = asked;
  const previous =
    previous_response_id === undefined ? await answeredIn(own, asked) : await readResponse(own, previous_response_id);
  // The list of a client that keeps the history itself has the call as well; that run may be over.
  const isAsked = answer !== undefined && isCallOf(previous, answer.call_id);
  const resumed = isAsked ? await answerCall(own, model, answer, options) : undefined;
  if (resumed !== undefined) return { ...resumed, isNew: false };
  if (previous !== undefined) checkPrevious(previous, model, answer?.call_id, options);
  const session_id = previous?.session_id ?? (conversation === undefined ? undefined : sessionIdFor(conversation));
  const body = { agent_name: model, input: messages, session_id };
  return { ...(await own.create(body, { ...options, request })), isNew: true };
}

/**
 * The first response of the run whose call a request answers, where it has nothing but the answer, and names the
 * conversation instead of a response. @throws RivuletError `validation_failed` where the conversation has no such call
 */
async function answeredIn(
  own: Access,
  { messages, conversation, answer }: AskedResponse,
): Promise<StoredResponse | undefined> {
  if (conversation === undefined || answer === undefined || messages.length > 0) return undefined;
  const { call_id } = answer;
  const run_id = placeOfCall(call_id)?.run_id;
  try {
    const found = run_id === undefined ? undefined : await readResponse(own, responseId({ run_id, after: 0 }));
    if (found?.session_id === sessionIdFor(conversation)) return found;
  } catch (error) {
    if (!(error instanceof RivuletError && error.status < 500)) throw error;
  }
  throw fail('validation_failed', 'input', `expected the output of a call of the conversation; it has no ${call_id}`);
}

/** Whether a call may be one of the run that a request names, where it names one. */
const isCallOf = (previous: StoredResponse | undefined, call_id: string): boolean =>
  previous === undefined || placeOfCall(call_id)?.run_id === previous.run_id;

/** What a response may not follow. @throws RivuletError `validation_failed`, `not_awaiting`, `session_busy` */
function checkPrevious(
  { current, run_id, session_id }: StoredResponse,
  model: string,
  answered: string | undefined,
  { if_busy }: RunOptions,
): void {
  const { call_id, status, id, model: asks } = current;
  if (call_id !== undefined && call_id === answered && asks !== model) {
    throw fail('validation_failed', 'model', `expected ${asks}, which waits for this answer; got ${model}`);
  }
  if (call_id !== undefined) {
    throw fail('validation_failed', 'input', `expected a function_call_output for ${call_id}, which ${id} waits for`);
  }
  if (answered !== undefined) throw fail('not_awaiting', run_id, status);
  if (if_busy === undefined && (status === 'queued' || status === 'in_progress')) {
    throw fail('session_busy', session_id ?? '', run_id);
  }
}

/**
 * `store: false`: deletes the run once the whole answer has left for its client. A run that is not final stays, and so
 * does one whose answer was in the buffers of a connection that broke: it can only be read again from the run.
 */
function removeAfter(reply: FastifyReply, own: Access, run_id: string): void {
  const { socket } = reply.request.raw;
  onceClosed(reply, () => {
    // Its error means that the run goes on, or awaits.
    if (reply.raw.writableEnded && !socket.errored) void own.remove(run_id).catch(() => undefined);
  });
}
