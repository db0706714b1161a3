import type { FastifyReply } from 'fastify';
import { toLine } from '../../core/encode.ts';
import { fail, RivuletError } from '../../core/errors.ts';
import type { AgentRequest } from '../../core/request.ts';
import type { Access } from '../../engine/access.ts';
import type { RunOptions } from '../../engine/runs/create.ts';
import { nameRun, type Responder } from '../../http/requests/respond.ts';
import { runOptions } from '../../http/requests/run-requests.ts';
import { after, beginning, type Position, Projector } from '../../http/sse/projection.ts';
import type { RunHeaders } from '../../schema/api.ts';
import { isUuid } from '../../schema/formats.ts';
import type { RunDetails } from '../../schema/run.ts';
import { cancelOpen } from '../replies.ts';
import { atPlace, reusedId } from '../request-errors.ts';
import { type Bounds, boundsAfter, boundsAt, type Outline, outlineOf, type Turn } from '../turns.ts';
import { inputOf, requestOf } from './input-messages.ts';
import { type AgUiRun, agUiFrames, runError } from './projection.ts';
import { type Answer, answerIn, openQuestion } from './reply.ts';
import { isModern, type RunAgentInput } from './run-input.ts';
import { leadOf, Transcript } from './transcript.ts';

/** A request for a run. */
export interface Posted {
  readonly agent: string;
  readonly body: RunAgentInput;
  readonly headers: RunHeaders;
}

/** A run of a client: a turn of the run here; without the event before it, it is the newest turn. */
export type FoundRun = Pick<Turn, 'run_id'> & Partial<Turn>;

/** A run that a client reads again. */
export interface ReadRun extends FoundRun {
  readonly runId: string;
  readonly threadId?: string;
  readonly protocolVersion?: string;
}

interface Sent {
  readonly run_id: string;
  readonly run: AgUiRun;
  readonly from: Position;
  readonly until?: 'settled' | 'final';
  readonly lead?: readonly string[];
  /** Whether the client joins streams that break to one. Default: where it sends `X-Run-Id`, as TanStack AI does. */
  readonly resumes?: boolean;
  readonly mode?: 'run' | 'events';
}

/** The ids that clients give their runs are idempotency keys: so each node finds the run again, while the key is kept. */
const scopeOf = (agent: string): string => `ag-ui ${agent}`;
const keyOf = ({ body, headers }: Posted): string => headers['idempotency-key'] ?? body.runId;

/** The streams that answer AG-UI clients. */
export class AgUiStreams {
  readonly #responder: Responder;

  constructor(responder: Responder) {
    this.#responder = responder;
  }

  /** Creates a run, or answers the question of one. A request that came before gets the same run again. */
  async begin(reply: FastifyReply, own: Access, posted: Posted): Promise<FastifyReply> {
    const answer = answerIn(posted.body);
    const taken = answer === undefined ? undefined : await take(own, posted, answer);
    if (answer === undefined || taken === undefined) {
      const { run_id } = await create(own, posted);
      const run = runOf(posted.body, requestOf(posted.body));
      return this.#send(reply, own, { run_id, run, from: beginning });
    }
    // The tools of the request that has made the run, which later readers of this turn get as well.
    const run = runOf(posted.body, await own.request(answer.run_id));
    return this.#send(reply, own, {
      run_id: answer.run_id,
      run: { ...run, cancels: answer.message === undefined },
      from: after(answer.n),
      // Until then, the question that the client has given up is the last event.
      until: taken === 'cancels' ? 'final' : 'settled',
    });
  }

  /** Goes on exactly where a stream broke, for a client that repeats its request. It creates nothing. */
  async again(reply: FastifyReply, own: Access, posted: Posted, cursor: Position): Promise<FastifyReply> {
    const { runId, threadId, protocolVersion } = posted.body;
    const known = (await own.findKey(scopeOf(posted.agent), keyOf(posted))) ?? (await answered(own, posted));
    if (known === undefined) throw fail('run_unknown', runId);
    const run = { ...known, runId, threadId, protocolVersion };
    return this.rest(reply, own, run, cursor);
  }

  /** The run that a client calls by its own id, or by the one here. @throws RivuletError `run_unknown`, `log_removed` */
  async find(own: Access, agent: string, runId: string): Promise<FoundRun> {
    const known = await own.findKey(scopeOf(agent), runId);
    if (known !== undefined) return known;
    const run_id = runId.toLowerCase();
    if (isUuid(run_id) && (await own.check(run_id)) === agent) return { run_id };
    throw fail('run_unknown', runId);
  }

  /** The frames after a cursor, and nothing before them: for a client that joins them to those that it has. */
  async rest(reply: FastifyReply, own: Access, read: ReadRun, cursor: Position): Promise<FastifyReply> {
    const from = await placeOf(own, read, cursor);
    const run = await this.#readerOf(own, read);
    return this.#send(reply, own, { run_id: read.run_id, run, from, resumes: true, mode: 'events' });
  }

  /**
   * For a client that begins to read anew. With a cursor, it has the messages so far: the rest follows, after frames that
   * open the run and what is open in it. Without, snapshots of state and messages come before the rest.
   */
  async reattach(reply: FastifyReply, own: Access, read: ReadRun, cursor: Position | undefined): Promise<FastifyReply> {
    const { run_id } = read;
    const from = await placeOf(own, read, cursor);
    const reader = await this.#readerOf(own, read);
    const transcript = await transcriptAt(own, run_id, reader, from);
    const lead = transcript.started ? leadOf(transcript, reader, run_id, { from, cursor }) : [];
    return this.#send(reply, own, { run_id, run: reader, from, lead, mode: 'events' });
  }

  /** What the frames for a reader say of its run. */
  async #readerOf(own: Access, { run_id, runId, threadId, protocolVersion }: ReadRun): Promise<AgUiRun> {
    const request = await own.request(run_id);
    const { conversation, metadata } = request;
    return {
      threadId: threadId ?? conversation ?? run_id,
      runId,
      modern: isModern(protocolVersion ?? metadata?.protocolVersion),
      tools: namesOf(request),
    };
  }

  #send(reply: FastifyReply, own: Access, sent: Sent): Promise<FastifyReply> {
    const { run_id, run, from, until = 'settled', lead = [], mode = 'run' } = sent;
    const { resumes = reply.request.headers['x-run-id'] !== undefined } = sent;
    nameRun(reply, run_id);
    return this.#responder.project(reply, own, run_id, {
      projection: agUiFrames(run),
      from,
      until,
      mode,
      lead: () => lead,
      // A reset leaves an unhandled rejection in the official client, which ends a Node process. A client that resumes
      // takes RUN_ERROR for the end of the run.
      ...(!resumes && { interrupted: (error) => `data: ${toLine(runError(error))}\n\n` }),
    });
  }
}

const namesOf = ({ tools = [] }: AgentRequest): string[] => tools.map(({ name }) => name);

const runOf = ({ threadId, runId, protocolVersion }: RunAgentInput, request: AgentRequest): AgUiRun => ({
  threadId,
  runId,
  modern: isModern(protocolVersion),
  tools: namesOf(request),
});

const optionsOf = (posted: Posted): RunOptions => ({
  ...runOptions(posted.headers),
  idempotency_key: keyOf(posted),
  key_scope: scopeOf(posted.agent),
});

async function create(own: Access, posted: Posted): Promise<{ run_id: string }> {
  const { agent, body } = posted;
  const input = inputOf(agent, body.messages);
  try {
    return await own.create({ agent_name: agent, input }, { ...optionsOf(posted), request: requestOf(body) });
  } catch (error) {
    throw reusedRunId(error, posted);
  }
}

const reusedRunId = (error: unknown, { headers }: Posted): unknown =>
  reusedId(error, headers, 'runId', 'came with another request before; send a new one for each run');

/**
 * Gives a run the answer of a request. `passed`: the question is not open any more, and the client that gives it up gets
 * what the run has done since. Undefined: it was the question of another time, whose answer is a part of the history.
 * @throws RivuletError as `resumeRun`, for the answer to an interrupt
 */
async function take(
  own: Access,
  posted: Posted,
  answer: Answer,
): Promise<'replies' | 'cancels' | 'passed' | undefined> {
  const { run_id, message, isResult } = answer;
  try {
    if ((await own.check(run_id)) !== posted.agent) throw fail('run_unknown', run_id);
    const question = await openQuestion(own, answer);
    if (message === undefined)
      return question !== undefined && (await cancelOpen(own, run_id, question.id)) ? 'cancels' : 'passed';
    // A repeated request has had its reply taken already.
    if (question === undefined && (await own.findKey(scopeOf(posted.agent), keyOf(posted)))?.run_id === run_id) {
      return 'replies';
    }
    if (question === undefined) throw fail('not_awaiting', run_id, 'past this question');
    const { channel = 'ag-ui', ...options } = optionsOf(posted);
    await own.resume(run_id, { message, id: question.id }, { ...options, channel });
    return 'replies';
  } catch (error) {
    const isPast = error instanceof RivuletError && pastQuestion.has(error.kind);
    if (isResult && isPast) return undefined;
    throw reusedRunId(atPlace(error, answer.path), posted);
  }
}

const pastQuestion = new Set(['run_unknown', 'log_removed', 'not_awaiting', 'question_mismatch']);

/** The run that a request answers. One whose request has cancelled the run is found by that alone. */
async function answered(own: Access, { agent, body }: Posted): Promise<FoundRun | undefined> {
  const answer = answerIn(body);
  if (answer === undefined || (await own.check(answer.run_id)) !== agent) return undefined;
  return { run_id: answer.run_id, after: answer.n };
}

/** Where a reader goes on in its turn. */
async function placeOf(own: Access, read: FoundRun, cursor: Position | undefined): Promise<Position> {
  const outline = await outlineOf(own, read.run_id, cursor?.event ?? read.after);
  const bounds = read.after === undefined ? boundsAt(outline, cursor) : boundsAfter(outline, read.after);
  return placeIn(outline, bounds, cursor);
}

/** What a client has at a place, in time that grows with the number of the events before it. */
async function transcriptAt(own: Access, run_id: string, run: AgUiRun, place: Position): Promise<Transcript> {
  const request = await own.request(run_id);
  const { input }: Pick<RunDetails, 'input'> =
    request.protocol === 'ag-ui' ? { input: [] } : JSON.parse(await own.details(run_id));
  const transcript = new Transcript(request, input, run.modern);
  const projector = new Projector(agUiFrames(run));
  if (place.event === 0) return transcript;
  for await (const { first, lines } of await own.stream(run_id, { seen: place.event, until: 'now' })) {
    for (const [index, line] of lines.entries()) {
      const n = first + index;
      const frames = projector.take(line, n);
      transcript.add(line, n === place.event ? frames.slice(0, place.frames) : frames);
      if (n === place.event) return transcript;
    }
  }
  return transcript;
}

// A run of a client is a turn of a run here. It ends where the run settles.

/** The place before the last frame of an event. */
const beforeLast = (event: number): Position => ({ event, frames: -1 });

/**
 * Where a reader of a turn goes on. One that has its end gets the last frame again: the clients take a stream without
 * one for a broken one.
 * @throws RivuletError `cursor_invalid`
 */
export function placeIn({ last }: Outline, bounds: Bounds, cursor: Position | undefined): Position {
  const { end } = bounds;
  if (cursor !== undefined && cursor.event > last) throw fail('cursor_invalid', 'Last-Event-ID', String(cursor.event));
  if (cursor === undefined) return end === undefined ? after(last) : beforeLast(end);
  if (cursor.event < bounds.after) return after(bounds.after);
  if (end === undefined || cursor.event < end) return cursor;
  return cursor.event === end && cursor.frames < Number.POSITIVE_INFINITY ? cursor : beforeLast(end);
}
