import type { Artifact, StreamResponse, Task, TaskStatus } from '@a2a-js/sdk';
import { textOf } from '../core/parts.ts';
import type { MessagePart } from '../schema/message.ts';
import type { AwaitRequest } from '../schema/run.ts';
import { cursorIn, errorIn, finishReasonIn, partsOf, questionIn, stepIn } from './a2a-parts.ts';
import { type Piece, reasonField } from './remote-run.ts';

/** `TaskState`: the enum is a value of the SDK, which is loaded later. */
const state = { completed: 3, failed: 4, canceled: 5, inputRequired: 6, rejected: 7, authRequired: 8 } as const;

const workStates = [1, 2];

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
  /** Pieces that were made here, and have not come back with `take`. */
  #made = 0;

  /** Takes note of a piece that the caller gets. Those of a journal were not made here. */
  take(piece: Piece): void {
    if (this.#made > 0) this.#made -= 1;
    else this.#note(piece);
  }

  /** The pieces of an answer. The last one has its position: a crash between two of them must not lose the others. */
  of({ payload }: StreamResponse): Piece[] {
    const pieces: Piece[] = [];
    const add = (piece: Piece): void => {
      pieces.push(piece);
      this.#note(piece);
      this.#made += 1;
    };
    switch (payload?.$case) {
      case 'task':
        this.#snapshot(payload.value, add);
        break;
      case 'message':
        for (const part of partsOf(payload.value.parts)) add({ type: 'part', part });
        add({ type: 'completed' });
        break;
      case 'statusUpdate':
        this.#named(payload.value.taskId, payload.value.contextId, add);
        this.#status(payload.value.status, add);
        break;
      case 'artifactUpdate': {
        const { taskId, contextId, artifact, append, lastChunk } = payload.value;
        this.#named(taskId, contextId, add);
        if (artifact === undefined) break;
        const isKnown = this.#had.has(artifact.artifactId);
        if (isKnown && !append) add({ type: 'replaced', of: artifact.artifactId });
        for (const part of partsOf(artifact.parts)) this.#part(artifact.artifactId, part, add);
        if (lastChunk) add(endOf(artifact));
        break;
      }
      default:
    }
    const last = pieces.pop();
    if (last === undefined) return [];
    const at = cursorIn(payload?.value.metadata);
    this.at = at ?? this.at;
    return [...pieces, at === undefined ? last : { ...last, at }];
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
    return Number(status?.state) === state.inputRequired && idOf(status) === this.answered;
  }

  #named(id: string, session: string, add: (piece: Piece) => void): void {
    if (this.task === undefined && id !== '') add({ type: 'run', id, session });
  }

  #snapshot({ id, contextId, artifacts, status }: Task, add: (piece: Piece) => void): void {
    this.#named(id, contextId, add);
    const isAtWork = workStates.includes(Number(status?.state));
    // What it says at work came before the newest text as a rule, and what it says at the end after it.
    if (isAtWork) this.#status(status, add);
    for (const artifact of artifacts) this.#rest(artifact, add);
    if (!isAtWork) this.#status(status, add);
  }

  /** What the caller does not have of an artifact. */
  #rest(artifact: Artifact, add: (piece: Piece) => void): void {
    const { artifactId, parts } = artifact;
    let { text, others } = this.#had.get(artifactId) ?? { text: 0, others: 0 };
    for (const part of partsOf(parts)) {
      if (!isText(part)) {
        if (others > 0) others -= 1;
        else this.#part(artifactId, part, add);
        continue;
      }
      const content = part.content?.slice(text) ?? '';
      text -= (part.content?.length ?? 0) - content.length;
      if (content !== '') this.#part(artifactId, { ...part, content }, add);
    }
    if (finishReasonIn(artifact.metadata) !== undefined && this.#open === artifactId) add(endOf(artifact));
  }

  #part(of: string, part: MessagePart, add: (piece: Piece) => void): void {
    if (this.#open !== undefined && this.#open !== of) add({ type: 'end-of-message' });
    add({ type: 'part', part, of });
  }

  #status(status: TaskStatus | undefined, add: (piece: Piece) => void): void {
    if (status === undefined) return;
    const { message } = status;
    const id = idOf(status);
    const parts = partsOf(message?.parts ?? []);
    const text = textOf({ role: 'agent', parts });
    const isNew = !this.#had.has(id);
    const fail = (code: string, otherwise: string): void => {
      const { code: own, data } = errorIn(message?.metadata) ?? { code: 'server_error' as const, data: { code } };
      add({ type: 'failed', error: { code: own, message: text || otherwise, ...(data && { data }) } });
    };
    switch (Number(status.state)) {
      case state.inputRequired:
        if (id === this.answered) return;
        add({ type: 'question', id, request: { ...questionIn(message?.metadata), ...asked(parts) } });
        return;
      case state.completed:
        if (isNew) for (const part of parts) this.#part(id, part, add);
        add({ type: 'completed' });
        return;
      case state.failed:
        fail('remote_failed', 'The remote agent failed.');
        return;
      case state.rejected:
        fail('remote_rejected', 'The remote agent rejected the task.');
        return;
      case state.canceled:
        fail('remote_cancelled', 'The remote task was cancelled on its own server.');
        return;
      case state.authRequired:
        fail('remote_auth_required', 'The remote agent asks for credentials of its own.');
        return;
      default:
        if (!workStates.includes(Number(status.state))) {
          fail('remote_invalid', 'The remote task has a state that the protocol does not have.');
          return;
        }
        // What it says while it works is a step.
        if (isNew && text !== '') {
          const step = stepIn(message?.metadata, text);
          add('generic' in step ? { type: 'generic', event: step, of: id } : { type: 'part', part: step, of: id });
        }
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
