import type { Artifact, StreamResponse, Task, TaskStatus } from '@a2a-js/sdk';
import { textOf } from '../core/parts.ts';
import type { MessagePart } from '../schema/message.ts';
import type { AwaitRequest } from '../schema/run.ts';
import { cursorIn, errorIn, finishReasonIn, partsOf, questionIn, stepIn } from './a2a-parts.ts';
import { type Piece, reasonField } from './remote-run.ts';

// The numbers of `TaskState`: the enum is a value of the SDK, which is loaded later.
const workStates = [1, 2];
const completed = 3;
const inputRequired = 6;
/** The states in which a task fails, each with a code and a text for a task that gives no reason. */
const failures: Readonly<Record<number, readonly [code: string, text: string]>> = {
  4: ['remote_failed', 'The remote agent failed.'],
  5: ['remote_cancelled', 'The remote task was cancelled on its own server.'],
  7: ['remote_rejected', 'The remote agent rejected the task.'],
  8: ['remote_auth_required', 'The remote agent asks for credentials of its own.'],
};
const unknownState = ['remote_invalid', 'The remote task has a state that the protocol does not have.'] as const;

/** What the caller has of an artifact: characters of text, and other parts. */
interface Had {
  text: number;
  others: number;
}

/**
 * What is new in each answer of a server, as pieces. A snapshot of the task has all artifacts so far: what the caller has
 * of them is left out, by its length. So a task continues after a break, and after a crash of the caller.
 */
export class TaskPieces {
  task: string | undefined;
  session: string | undefined;
  /** The last question, and the one that was answered last. */
  question: string | undefined;
  answered: string | undefined;
  /** The position of the last frame, where the server has them. */
  at: string | undefined;
  settled = false;
  readonly #had = new Map<string, Had>();
  /** The artifact that the open message belongs to. */
  #open: string | undefined;
  /** The number of pieces that were made here, and have not come back with `take`. */
  #made = 0;

  /** Notes a piece of the journal, which this object has not made. Its own pieces, which come back as well, are noted already. */
  take(piece: Piece): void {
    if (this.#made > 0) this.#made -= 1;
    else this.#note(piece);
  }

  /** The pieces of an answer. The last one has its position: a crash between two of them must not lose the others. */
  of({ payload }: StreamResponse): Piece[] {
    const pieces: Piece[] = [];
    for (const piece of this.#piecesOf(payload)) {
      pieces.push(piece);
      this.#note(piece);
      this.#made += 1;
    }
    const last = pieces.pop();
    if (last === undefined) return [];
    const at = cursorIn(payload?.value.metadata);
    this.at = at ?? this.at;
    return [...pieces, at === undefined ? last : { ...last, at }];
  }

  /** Each piece is noted before the next one is made. */
  *#piecesOf(payload: StreamResponse['payload']): Generator<Piece> {
    switch (payload?.$case) {
      case 'task':
        yield* this.#snapshot(payload.value);
        break;
      case 'message':
        for (const part of partsOf(payload.value.parts)) yield { type: 'part', part };
        yield { type: 'completed' };
        break;
      case 'statusUpdate':
        yield* this.#named(payload.value.taskId, payload.value.contextId);
        yield* this.#status(payload.value.status);
        break;
      case 'artifactUpdate': {
        const { taskId, contextId, artifact, append, lastChunk } = payload.value;
        yield* this.#named(taskId, contextId);
        if (artifact === undefined) break;
        const isKnown = this.#had.has(artifact.artifactId);
        if (isKnown && !append) yield { type: 'replaced', of: artifact.artifactId };
        for (const part of partsOf(artifact.parts)) yield* this.#part(artifact.artifactId, part);
        if (lastChunk) yield endOf(artifact);
        break;
      }
      default:
    }
  }

  #note(piece: Piece): void {
    this.at = piece.at ?? this.at;
    switch (piece.type) {
      case 'run':
        this.task = piece.id;
        this.session = piece.session;
        break;
      case 'part': {
        if (piece.of === undefined) break;
        if (!piece.of.startsWith(ofStatus)) this.#open = piece.of;
        const had = this.#had.get(piece.of) ?? { text: 0, others: 0 };
        this.#had.set(piece.of, had);
        if (isText(piece.part)) had.text += piece.part.content?.length ?? 0;
        else had.others += 1;
        break;
      }
      case 'generic':
        // A status that is read again has the same id.
        if (piece.of !== undefined) this.#had.set(piece.of, { text: 0, others: 1 });
        break;
      case 'replaced':
        this.#open = undefined;
        if (piece.of !== undefined) this.#had.set(piece.of, { text: 0, others: 0 });
        break;
      case 'end-of-message':
        this.#open = undefined;
        break;
      case 'question':
        this.#open = undefined;
        this.question = piece.id;
        this.settled = true;
        break;
      case 'completed':
      case 'failed':
        this.settled = true;
        break;
      default:
    }
  }

  /** The reply to the question is on its way. */
  answer(): void {
    this.answered = this.question;
    this.settled = false;
  }

  /** Whether the task still asks the question that was answered. */
  stillAsks({ status }: Task): boolean {
    return Number(status?.state) === inputRequired && idOf(status) === this.answered;
  }

  *#named(id: string, session: string): Generator<Piece> {
    if (this.task === undefined && id !== '') yield { type: 'run', id, session };
  }

  *#snapshot({ id, contextId, artifacts, status }: Task): Generator<Piece> {
    yield* this.#named(id, contextId);
    const isAtWork = workStates.includes(Number(status?.state));
    // What it says at work came before the newest text as a rule, and what it says at the end after it.
    if (isAtWork) yield* this.#status(status);
    for (const artifact of artifacts) yield* this.#rest(artifact);
    if (!isAtWork) yield* this.#status(status);
  }

  /** What the caller does not have of an artifact. */
  *#rest(artifact: Artifact): Generator<Piece> {
    const { artifactId, parts } = artifact;
    let { text, others } = this.#had.get(artifactId) ?? { text: 0, others: 0 };
    for (const part of partsOf(parts)) {
      if (!isText(part)) {
        if (others > 0) others -= 1;
        else yield* this.#part(artifactId, part);
        continue;
      }
      const content = part.content?.slice(text) ?? '';
      text -= (part.content?.length ?? 0) - content.length;
      if (content !== '') yield* this.#part(artifactId, { ...part, content });
    }
    if (finishReasonIn(artifact.metadata) !== undefined && this.#open === artifactId) yield endOf(artifact);
  }

  *#part(of: string, part: MessagePart): Generator<Piece> {
    if (this.#open !== undefined && this.#open !== of) yield { type: 'end-of-message' };
    yield { type: 'part', part, of };
  }

  *#status(status: TaskStatus | undefined): Generator<Piece> {
    if (status === undefined) return;
    const { message } = status;
    const id = idOf(status);
    const parts = partsOf(message?.parts ?? []);
    const text = textOf({ role: 'agent', parts });
    const isNew = !this.#had.has(id);
    const state = Number(status.state);
    if (state === inputRequired) {
      if (id !== this.answered)
        yield { type: 'question', id, request: { ...questionIn(message?.metadata), ...asked(parts) } };
    } else if (state === completed) {
      if (isNew) for (const part of parts) yield* this.#part(id, part);
      yield { type: 'completed' };
    } else if (workStates.includes(state)) {
      if (!isNew || text === '') return;
      // What it says while it works is a step.
      const step = stepIn(message?.metadata, text);
      yield 'generic' in step ? { type: 'generic', event: step, of: id } : { type: 'part', part: step, of: id };
    } else {
      const [code, otherwise] = failures[state] ?? unknownState;
      const { code: own, data } = errorIn(message?.metadata) ?? { code: 'server_error' as const, data: { code } };
      yield { type: 'failed', error: { code: own, message: text || otherwise, ...(data && { data }) } };
    }
  }
}

const endOf = ({ metadata }: Artifact): Piece => ({
  type: 'end-of-message',
  ...reasonField(finishReasonIn(metadata)),
});

/** Begins the ids of what a status says, which is no artifact. */
const ofStatus = 'status ';

/** A status has no id of its own. */
const idOf = (status: TaskStatus | undefined): string =>
  `${ofStatus}${status?.message?.messageId || status?.timestamp || ''}`;

const nothingSaid: MessagePart = { content_type: 'text/plain', content: 'The remote agent needs more input.' };

const asked = (parts: MessagePart[]): Pick<AwaitRequest, 'type' | 'message'> => ({
  type: 'message',
  message: { role: 'agent', parts: parts.length > 0 ? parts : [nothingSaid] },
});

const isText = ({ content, content_encoding, content_type = '', name, metadata }: MessagePart): boolean =>
  content !== undefined &&
  content_encoding !== 'base64' &&
  /^text\//i.test(content_type) &&
  name === undefined &&
  metadata === undefined;
