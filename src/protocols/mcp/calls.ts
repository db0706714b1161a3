import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import type { FastifyReply } from 'fastify';
import { fail, RivuletError } from '../../core/errors.ts';
import type { AgentRequest } from '../../core/request.ts';
import { compile, open } from '../../core/validate.ts';
import type { Access } from '../../engine/access.ts';
import type { RunOptions } from '../../engine/runs/create.ts';
import { listsValue } from '../../http/requests/negotiation.ts';
import { nameRun, sendJson } from '../../http/requests/respond.ts';
import { lastEventIdIn, runOptions } from '../../http/requests/run-requests.ts';
import { after, beginning } from '../../http/sse/projection.ts';
import type { RunHeaders } from '../../schema/api.ts';
import type { ProtocolOptions } from '../protocol.ts';
import { cancelOpen, isPassed } from '../replies.ts';
import { cancelledText } from '../run-errors.ts';
import { type Client, checkParamHeaders, olderVersions } from './client.ts';
import { ElicitResult, elicitOf, replyOf } from './elicitation.ts';
import { type Call, placeIn } from './event-ids.ts';
import { RpcError, RpcId, type RpcNotification, type RpcRequest, type RpcResponse, resultOf } from './json-rpc.ts';
import { firstFrames, mcpFrames, type ProjectedCall } from './projection.ts';
import { askedIn, cancelOnceAsked, notAnswered, openQuestion, requestIds, requestState } from './questions.ts';
import { taskBegun } from './tasks.ts';
import { failedResult } from './tool-result.ts';
import { findTool, outputSchemaOf, runOf } from './tools.ts';

const CallParams = open({
  name: Type.String(),
  arguments: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  inputResponses: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  requestState: Type.Optional(Type.String()),
  _meta: Type.Optional(
    open({
      progressToken: Type.Optional(RpcId),
      'rivulet/progress': Type.Optional(
        Type.Union([Type.Literal('lines'), Type.Literal('tokens')], { description: 'what progress says of text' }),
      ),
    }),
  ),
});
type CallParams = Static<typeof CallParams>;
const checkCall = compile(CallParams, 'params');

/** What a request to call a tool says. @throws RivuletError `validation_failed` */
export const callIn = ({ params = {} }: RpcRequest): CallParams => checkCall(params);

const checkReply = compile(ElicitResult, 'result');

/** Milliseconds in which a call without progress is answered as JSON; after that, with a stream. */
const quick = 1_000;
/** Milliseconds between two notifications of progress about text. */
const pace = 100;

/** Replies and calls have their keys here. */
const keyScope = 'mcp';

/** One request, with its client and its caller. */
export interface Asked {
  readonly reply: FastifyReply;
  readonly own: Access;
  readonly client: Client;
  readonly headers: RunHeaders;
  readonly message: RpcRequest;
}

interface Answered {
  readonly call: Call;
  readonly client: Pick<Client, 'modern' | 'version'>;
  readonly agent: string;
  readonly tool: string;
  readonly run_id: string;
  /** The number of the last event that belongs to an earlier answer. */
  readonly from: number;
}

/** Calls of tools: runs, and the replies to what they ask. */
export class Calls {
  readonly #options: ProtocolOptions;

  constructor(options: ProtocolOptions) {
    this.#options = options;
  }

  /** Begins a run, or goes on with one that has asked. */
  async call(asked: Asked): Promise<FastifyReply> {
    const { reply, own, client, message } = asked;
    const eventId = lastEventIdIn(reply.request);
    if (eventId !== undefined) return this.resume(reply, own, eventId, message.id);
    const params = callIn(message);
    const manifest = findTool(own, params.name);
    const meta = params._meta ?? {};
    if (client.modern) {
      const { headers } = reply.request;
      checkParamHeaders(headers, manifest.metadata?.tool?.input_schema ?? {}, params.arguments ?? {});
    }
    const call: Call = {
      id: message.id,
      token: meta.progressToken,
      modern: client.modern,
      asks: client.elicits && (client.modern || readsStreams(reply)),
      everyToken: meta['rivulet/progress'] === 'tokens',
    };
    const answered = { call, client, agent: manifest.name, tool: params.name };
    if (params.requestState !== undefined) return this.#retry(asked, params, params.requestState, answered);
    const run = runOf(manifest, params.arguments ?? {});
    this.#options.responder.admit(own, 'stream');
    const isTask = client.tasks && manifest.metadata?.tool?.long_running === true;
    const accepted = await own.create(run, { ...this.#optionsOf(asked, isTask), request: requestOf(params) });
    const { run_id, after: from } = accepted;
    if (!isTask) return this.#answer(reply, own, { ...answered, run_id, from });
    nameRun(reply, run_id);
    return reply.send(resultOf(message.id, taskBegun(own, accepted.run)));
  }

  /** The rest of a stream that broke, after the event that its client has. `id`: the id of the call, where the client repeats it. */
  async resume(reply: FastifyReply, own: Access, eventId: string, id?: RpcId): Promise<FastifyReply> {
    const { run_id, call, n } = placeIn(eventId);
    if (id !== undefined && id !== call.id) throw fail('cursor_invalid', 'Last-Event-ID', eventId.slice(0, 100));
    const agent = await own.check(run_id);
    this.#options.responder.admit(own, 'stream');
    nameRun(reply, run_id);
    const tool = own.tools().find(({ name }) => name === agent)?.metadata?.tool?.name ?? agent;
    return this.#stream(
      reply,
      own,
      {
        call,
        client: { modern: call.modern, version: String(reply.request.headers['mcp-protocol-version']) },
        agent,
        tool,
        run_id,
        from: n,
      },
      'events',
    );
  }

  /** An older client's answer to a question in its stream. One that comes too late, or twice, is ignored. */
  async reply(own: Access, { id, result }: RpcResponse): Promise<void> {
    const { run_id, n } = requestIds.in(String(id)) ?? {};
    if (run_id === undefined || n === undefined) return;
    const question = String(n);
    const asked = await openQuestion(own, run_id, question);
    if (asked === undefined) return;
    try {
      // A client without forms answers with an error: it gives no reply.
      const message = result === undefined ? undefined : replyOf(asked, checkReply(result));
      if (message === undefined) return void (await cancelOpen(own, run_id, question, notAnswered));
      await own.resume(run_id, { id: question, message }, { channel: 'mcp' });
    } catch (error) {
      if (isPassed(error)) return;
      if (!isUnfit(error)) throw error;
      // The client asks its user no more, and does not check the form itself: the call has to end. Its result says why, and
      // so does the answer to the reply.
      const reason = `the reply to its question does not fit the form: ${error.message.replace(/\.$/, '')}`;
      await cancelOpen(own, run_id, question, reason);
      throw new RpcError('invalidParams', cancelledText(reason), { status: 400 });
    }
  }

  /** An older client that waits no more for a call. Its session and the id of the call name the run, on any node. */
  async cancelled(own: Access, { session }: Client, { params = {} }: RpcNotification): Promise<void> {
    const { requestId } = params;
    if (session === undefined || (typeof requestId !== 'string' && typeof requestId !== 'number')) return;
    const known = await own.findKey(keyScope, callKey(session, requestId));
    if (known !== undefined) await cancelOpen(own, known.run_id);
  }

  #optionsOf({ client, headers, message }: Asked, isTask: boolean): RunOptions {
    const { idempotency_key, ...options } = runOptions(headers);
    const id = client.session === undefined ? undefined : callKey(client.session, message.id);
    const key = idempotency_key ?? id;
    // To close the stream is to cancel the call, unless the client comes back with the id of its last event.
    const seconds = Math.max(minGrace, 2 * this.#options.limits.retry) / 1_000;
    return {
      ...(client.modern && !isTask && { on_disconnect: `grace=${seconds}` as const }),
      ...options,
      ...(key !== undefined && {
        idempotency_key: key,
        key_scope: keyScope,
        key_while_open: idempotency_key === undefined,
      }),
    };
  }

  /** A modern client repeats its call with the reply to what was asked. */
  async #retry(
    { reply, own, message: { id } }: Asked,
    { inputResponses = {} }: CallParams,
    state: string,
    answered: Omit<Answered, 'run_id' | 'from'>,
  ): Promise<FastifyReply> {
    const given = askedIn(this.#options.signatures, state, answered.tool, own.principal);
    if (given === undefined) {
      throw new RpcError(
        'invalidParams',
        'params.requestState: expected what this server has sent to this caller for this tool',
      );
    }
    const { run_id, question } = given;
    const key = { idempotency_key: `${run_id}.${question}`, key_scope: keyScope, channel: 'mcp' };
    // The question first: where the same retry has closed it meanwhile, on any node, its key is found.
    const asked = await openQuestion(own, run_id, question);
    const known = await own.findKey(keyScope, key.idempotency_key);
    if (known !== undefined) return this.#answer(reply, own, { ...answered, run_id, from: known.after });
    if (asked === undefined) throw fail('not_awaiting', run_id, 'past this question');
    const again = (): FastifyReply => {
      const result = {
        resultType: 'input_required',
        inputRequests: { [question]: elicitOf(asked) },
        requestState: state,
      };
      return reply.send(resultOf(id, result));
    };
    const input = inputResponses[question];
    if (!isReply(input)) return again();
    const message = replyOf(asked, input);
    if (message === undefined) {
      // Its reply may have come by another way since the question was read.
      if (!(await cancelOpen(own, run_id, question, notAnswered)))
        throw fail('not_awaiting', run_id, 'past this question');
      const result = failedResult(cancelledText(notAnswered), run_id);
      return reply.send(resultOf(id, { resultType: 'complete', ...result }));
    }
    this.#options.responder.admit(own, 'stream');
    try {
      const { after } = await own.resume(run_id, { id: question, message }, key);
      return await this.#answer(reply, own, { ...answered, run_id, from: after });
    } catch (error) {
      if (isUnfit(error)) return again();
      throw error;
    }
  }

  /** As JSON, where the run settles soon and its client wants no progress; otherwise with a stream. */
  async #answer(reply: FastifyReply, own: Access, answered: Answered): Promise<FastifyReply> {
    const { run_id, call, from } = answered;
    const { responder } = this.#options;
    nameRun(reply, run_id);
    if (!call.asks) void cancelOnceAsked(own, run_id, from);
    const projection = mcpFrames(this.#projected(own, answered));
    const options = { after: from };
    const state = !readsStreams(reply)
      ? await responder.settledState(reply, own, run_id, projection, options)
      : call.token === undefined
        ? await responder.settledWithin(quick, reply, own, run_id, projection, options)
        : undefined;
    return state?.answer === undefined
      ? this.#stream(reply, own, answered, 'run')
      : sendJson(reply.code(state.status ?? 200), state.answer);
  }

  #stream(reply: FastifyReply, own: Access, answered: Answered, mode: 'run' | 'events'): Promise<FastifyReply> {
    const { run_id, call, from } = answered;
    const projected = this.#projected(own, answered);
    return this.#options.responder.project(reply, own, run_id, {
      projection: mcpFrames(projected),
      from: from === 0 ? beginning : { ...after(from), name: 'Last-Event-ID' },
      // An older client is asked within the stream, which goes on after its reply.
      until: call.asks && !call.modern ? 'final' : 'settled',
      mode,
      // The official clients forget the id of their last event with each connection, so each stream begins with one. The
      // first event of the log makes this frame itself.
      lead: () => (from > 0 ? firstFrames(projected, from) : []),
      ...(!call.everyToken && { pace }),
    });
  }

  #projected(own: Access, { call, client, agent, tool, run_id }: Answered): ProjectedCall {
    return {
      ...call,
      run_id,
      // Clients of earlier versions parse the data of each event.
      begins: client.modern || client.version === olderVersions[0],
      outputSchema: outputSchemaOf(own, agent),
      stateOf: (asked) => requestState(this.#options.signatures, asked, tool, own.principal),
    };
  }
}

/** Milliseconds that a client has at least to come back. */
const minGrace = 2_000;

const readsStreams = ({ request }: FastifyReply): boolean => listsValue(request.headers.accept, 'text/event-stream');

/** The key of a call of an older client. Within a session, an id stands for one open call. */
const callKey = (session: string, id: RpcId): string => `${session} ${JSON.stringify(id)}`;

const requestOf = ({ name }: CallParams): AgentRequest => ({ protocol: 'mcp', metadata: { tool: name } });

const isUnfit = (error: unknown): error is RivuletError =>
  error instanceof RivuletError && error.kind === 'validation_failed';

const isReply = (input: unknown): input is ElicitResult => Value.Check(ElicitResult, input);
