import { setImmediate as nextTurn } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { type ErrorName, fail, RivuletError } from '../../core/errors.ts';
import { fold } from '../../core/fold.ts';
import type { AgentRequest } from '../../core/request.ts';
import type { Access } from '../../engine/access.ts';
import type { Projection } from '../../http/sse/projection.ts';
import type { Event } from '../../schema/event.ts';
import { isUuid } from '../../schema/formats.ts';
import type { Message } from '../../schema/message.ts';
import type { Run, RunDetails } from '../../schema/run.ts';
import { a2aFrames, type FrameForm, isShared } from './projection.ts';
import { type Conversation, type Task, type TaskExtent, taskOf } from './task-object.ts';

/** What a task has beside its log, and what its readers share. */
interface Begun {
  readonly task: Conversation;
  /** The messages that the run was made with. */
  readonly input: readonly Message[];
  /** The projections that readers share, by the length of their history. */
  readonly projections: Map<number | undefined, A2aProjection>;
}

type A2aProjection = Projection<ReturnType<typeof a2aFrames>['start']>;

/** Characters of messages that are kept for tasks that are being read. */
const maxChars = 4 * 1024 * 1024;

const unreadable: ReadonlySet<ErrorName> = new Set(['run_unknown', 'log_removed', 'log_damaged']);

/** Reads tasks from logs. Readers of one task share a projection, and so its frames. */
export class Tasks {
  readonly #begun = new LRUCache<string, Begun>({
    max: 1_000,
    maxSize: maxChars,
    sizeCalculation: ({ input }) => JSON.stringify(input).length + 1,
  });

  /** A run that was made with a request, as JSON. */
  add(run: string, input: readonly Message[], request: AgentRequest): void {
    const made: Run = JSON.parse(run);
    if (!this.#begun.has(made.run_id)) this.#begun.set(made.run_id, begun(made, request, input));
  }

  /**
   * The id of a task that the caller may see, of an agent or of any.
   * @throws RivuletError `run_unknown`, `log_removed`
   */
  async find(own: Access, agent: string | undefined, id: string): Promise<string> {
    const run_id = id.toLowerCase();
    if (!isUuid(run_id)) throw fail('run_unknown', id.slice(0, 100));
    const found = await own.check(run_id);
    if (agent !== undefined && found !== agent) throw fail('run_unknown', run_id);
    return run_id;
  }

  /** The task as it is now. @throws RivuletError `run_unknown`, `log_removed` */
  async read(own: Access, run_id: string, extent: TaskExtent): Promise<Task> {
    const run: RunDetails = JSON.parse(await own.details(run_id));
    const task = this.#begun.get(run_id)?.task ?? conversationOf(run, await own.request(run_id));
    return taskOf(task, run, run.input, extent);
  }

  /** The task of a list; undefined where it was deleted meanwhile, or where its log cannot be read: an error would hide all others. */
  async readListed(own: Access, run_id: string, extent: TaskExtent): Promise<Task | undefined> {
    try {
      return await this.read(own, run_id, extent);
    } catch (error) {
      if (error instanceof RivuletError && unreadable.has(error.kind)) return undefined;
      throw error;
    }
  }

  /** The task as of an event of its log, in time that grows with the number of the events before it. @throws as `read` */
  async readAt(own: Access, run_id: string, n: number, extent: TaskExtent): Promise<Task> {
    return this.of(own, run_id, await runAt(own, run_id, n), extent);
  }

  /** A state of a run as a task. @throws as `read` */
  async of(own: Access, run_id: string, run: Run, extent: TaskExtent): Promise<Task> {
    const { task, input } = await this.#find(own, run_id);
    return taskOf(task, run, input, extent);
  }

  /** The projection of a request. Readers whose frames are alike share it. @throws as `read` */
  async projection(own: Access, run_id: string, form: FrameForm): Promise<A2aProjection> {
    const { historyLength, ...rest } = form;
    const { task, input, projections } = await this.#find(own, run_id);
    // The first frame has all messages where it may have as many.
    const length = historyLength !== undefined && historyLength < input.length ? historyLength : undefined;
    const shared = isShared(form) ? projections.get(length) : undefined;
    const extent = length === undefined ? {} : { historyLength: length };
    const projection = shared ?? a2aFrames(task, input, { ...rest, ...extent });
    if (projection.shared) projections.set(length, projection);
    return projection;
  }

  /** The caller has checked that it may see the run. */
  async #find(own: Access, run_id: string): Promise<Begun> {
    const known = this.#begun.get(run_id);
    if (known !== undefined) return known;
    const { input, ...run }: RunDetails = JSON.parse(await own.details(run_id));
    const found = begun(run, await own.request(run_id), input);
    this.#begun.set(run_id, found);
    return found;
  }
}

const begun = (run: Run, request: AgentRequest, input: readonly Message[]): Begun => ({
  task: conversationOf(run, request),
  input,
  projections: new Map(),
});

/** A client calls the conversation as it likes; runs of other protocols have the id of their session. */
const conversationOf = ({ run_id, session_id }: Run, { protocol, conversation }: AgentRequest): Conversation => ({
  taskId: run_id,
  contextId: (protocol === 'a2a' ? conversation : undefined) ?? session_id ?? run_id,
});

/** Events of a log that are folded in one turn of the event loop: 2 to 5 ms. */
const eventsPerTurn = 1_000;

/** Folds a log up to an event. @throws RivuletError `cursor_invalid` where it ends before */
async function runAt(own: Access, run_id: string, n: number): Promise<Run> {
  let run: Run | undefined;
  for await (const { first, lines } of await own.stream(run_id, { seen: n, until: 'now' })) {
    for (const [index, line] of lines.entries()) {
      const event: Event = JSON.parse(line);
      if (run !== undefined) run = fold(run, event);
      else if ('run' in event) run = event.run;
      if (first + index === n && run !== undefined) return run;
      if ((first + index) % eventsPerTurn === 0) await nextTurn();
    }
  }
  throw fail('cursor_invalid', 'the position', String(n));
}
