import { flat, toLine } from '../../core/encode.ts';
import { textOf } from '../../core/parts.ts';
import { tokenIn } from '../../core/recognize.ts';
import { isFinal } from '../../core/run-state.ts';
import { frameId, type Projection } from '../../http/sse/projection.ts';
import { extension } from '../../schema/a2a-extension.ts';
import type { Event } from '../../schema/event.ts';
import type { FinishReason, Message, MessagePart } from '../../schema/message.ts';
import type { Run } from '../../schema/run.ts';
import {
  agentMessage,
  artifactId,
  type Conversation,
  isNamed,
  markOf,
  statusOf,
  type TaskStatus,
  taskOf,
} from './task-object.ts';
import { stepOf, taskPartOf } from './task-parts.ts';

interface State {
  /** Artifacts that have begun. */
  readonly artifacts: number;
  /**
   * The artifact of the message that is open: its id, and its frames up to the token; for a client
   * with cursors in two pieces, which the position is between.
   */
  readonly open?: { readonly id: string; readonly head: string; readonly afterPosition: string | undefined };
  /** The status after the last change; undefined before the first event. */
  readonly status?: TaskStatus;
}

/** What differs between the frames of two requests. */
export interface FrameForm {
  /** The messages of the history in the first frame. Default: all. */
  readonly historyLength?: number;
  /** The id of a request of JSON-RPC, as JSON: each frame is a response to it. */
  readonly id?: string;
  /** Whether each update has its position in its metadata. */
  readonly cursors?: boolean;
}

const headOf = ({ id }: FrameForm): string => (id === undefined ? '' : `{"jsonrpc":"2.0","id":${id},"result":`);
const tailOf = ({ id }: FrameForm): string => (id === undefined ? '' : '}');

/** A frame with the position of its SSE id. */
function frameOf(kind: string, value: object, position: string, form: FrameForm): string {
  // No other frame of this server's has metadata of its own.
  const data = form.cursors ? { metadata: { [extension.cursor]: position }, ...value } : value;
  return `data: ${headOf(form)}${toLine({ [kind]: data })}${tailOf(form)}\nid: ${position}\n\n`;
}

/** The frame of a snapshot: the whole task, as of event `n`. */
export const taskFrame = (task: object, n: number, form: FrameForm): string => frameOf('task', task, String(n), form);

const tokenEnd = '}]},"append":true}}';

/**
 * A log as the frames of A2A. A frame's SSE id is the number of its event; where the event has several frames, those
 * before the last have `n.1`, `n.2`, …: a reader goes on after any of them. `input` has the messages that the run was
 * made with.
 */
export function a2aFrames(task: Conversation, input: readonly Message[], form: FrameForm = {}): Projection<State> {
  const { historyLength } = form;
  const end = flat(`${tokenEnd}${tailOf(form)}\nid: `);
  return {
    start: { artifacts: 0 },
    // A frame may have the id of its request.
    shared: false,
    project(state, line, n, frames) {
      const token = tokenIn(line);
      if (token !== undefined && state.open !== undefined) {
        const { head, afterPosition } = state.open;
        if (afterPosition === undefined) frames.push(`${head}${token}${end}${n}\n\n`);
        else frames.push(`${head}${n}${afterPosition}${token}${end}${n}\n\n`);
        return state;
      }
      const group = new Group(task, state, n, form);
      const event: Event = JSON.parse(line);
      // The first frame of a stream is the task.
      if (event.type === 'run.created') group.begin(event.run, (run) => taskOf(task, run, input, { historyLength }));
      else group.add(event);
      group.write(frames);
      return group.state;
    },
  };
}

/** The frames of one event. */
class Group {
  readonly #task: Conversation;
  readonly #n: number;
  readonly #form: FrameForm;
  readonly #updates: [kind: string, value: object][] = [];
  state: State;

  constructor(task: Conversation, state: State, n: number, form: FrameForm) {
    this.#task = task;
    this.state = state;
    this.#n = n;
    this.#form = form;
  }

  write(frames: string[]): void {
    for (const [index, [kind, value]] of this.#updates.entries()) {
      frames.push(frameOf(kind, value, frameId(this.#n, index, this.#updates.length), this.#form));
    }
  }

  begin(run: Run, taskAt: (run: Run) => object): void {
    this.state = { ...this.state, status: statusOf(this.#task, run) };
    this.#updates.push(['task', taskAt(run)]);
  }

  add(event: Event): void {
    if ('run' in event) {
      this.#change(event.run);
      return;
    }
    switch (event.type) {
      case 'message.created':
        this.#close();
        return;
      case 'message.completed':
        this.#close(event.message.finish_reason);
        return;
      case 'message.part':
        this.#part(event.part);
        return;
      case 'generic': {
        const { kind, message } = event.generic;
        if (kind === 'progress' && typeof message === 'string') this.#step(message, event.generic);
        return;
      }
      case 'error':
        return;
      default:
        event satisfies never;
    }
  }

  /** After its last status a task has no update, so what is open is closed before. */
  #change(run: Run): void {
    if (isFinal(run.status)) this.#close();
    this.state = { ...this.state, status: statusOf(this.#task, run) };
    this.#status(this.state.status);
  }

  #status(status: TaskStatus | undefined): void {
    this.#updates.push(['statusUpdate', { ...this.#task, status }]);
  }

  #part(part: MessagePart): void {
    const { metadata } = part;
    if (metadata?.kind === 'trajectory') {
      this.#step(metadata.message || metadata.tool_name || textOf({ ...part, metadata: undefined }), stepOf(metadata));
      return;
    }
    const parts = [taskPartOf(part)];
    if (part.name !== undefined && isNamed(part)) {
      this.#update({ artifactId: this.#nextId(), name: part.name, parts }, { lastChunk: true });
      return;
    }
    const { open } = this.state;
    if (open !== undefined) {
      this.#update({ artifactId: open.id, parts }, { append: true });
      return;
    }
    const id = this.#nextId();
    this.state = { ...this.state, open: { id, ...this.#headsOf(id) } };
    this.#update({ artifactId: id, parts }, {});
  }

  #headsOf(artifactId: string): { readonly head: string; readonly afterPosition: string | undefined } {
    const { taskId, contextId } = this.#task;
    const begun = `data: ${headOf(this.#form)}{"artifactUpdate":{`;
    const update = toLine({ taskId, contextId, artifact: { artifactId } }).slice(1, -2);
    const rest = `${update},"parts":[{"text":`;
    if (!this.#form.cursors) return { head: flat(`${begun}${rest}`), afterPosition: undefined };
    return { head: flat(`${begun}"metadata":{"${extension.cursor}":"`), afterPosition: flat(`"},${rest}`) };
  }

  #nextId(): string {
    this.state = { ...this.state, artifacts: this.state.artifacts + 1 };
    return artifactId(this.state.artifacts);
  }

  #update(artifact: object, how: { append?: true; lastChunk?: true }): void {
    this.#updates.push(['artifactUpdate', { ...this.#task, artifact, ...how }]);
  }

  /** What has no part left to send is closed by an empty one: to hold back the last token would delay all tokens. */
  #close(reason?: FinishReason): void {
    const { open } = this.state;
    if (open === undefined) return;
    const artifact = { artifactId: open.id, parts: [{ text: '' }], ...markOf(reason) };
    this.#update(artifact, { append: true, lastChunk: true });
    this.state = { ...this.state, open: undefined };
  }

  /** What the agent does is the message of its status. While the run awaits, that is the question. */
  #step(text: string, step: unknown): void {
    const { status } = this.state;
    if (status === undefined || status.state !== 'TASK_STATE_WORKING') return;
    const message = { ...agentMessage(this.#task, `s${this.#n}`, [{ text }]), metadata: { [extension.step]: step } };
    this.#status({ ...status, message });
  }
}
