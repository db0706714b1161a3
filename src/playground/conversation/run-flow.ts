import type { Event, Message } from '../../client/client.ts';
import { openMessage } from '../../core/fold.ts';
import { callOf } from '../../core/parts.ts';
import { isFinal } from '../../core/run-state.ts';
import type { Question, Run } from '../../schema/run.ts';

/** A `generic` event, or several `progress` events of one piece of work, in its position in the conversation. */
export interface Note {
  readonly generic: Readonly<Record<string, unknown>>;
  /** Parts of the open message before it, and characters of their text; undefined before or between messages. */
  readonly position: { readonly parts: number; readonly text: number } | undefined;
  /** Questions that the run had asked before it. */
  readonly questions: number;
  /** Milliseconds of the record. */
  readonly began: number;
  readonly ended: number;
}

/** Notes of one message that are kept; the inspector shows all events. */
const maxNotes = 50;

/** `progress` of core/parts.ts, read with care: an agent may emit anything. */
export interface Progress {
  readonly message: string;
  readonly done: number | undefined;
  readonly total: number | undefined;
}

export function progressOf({ kind, message, done, total }: Note['generic']): Progress | undefined {
  if (kind !== 'progress' || typeof message !== 'string') return undefined;
  const number = (value: unknown): number | undefined =>
    typeof value === 'number' && Number.isFinite(value) ? value : undefined;
  return { message, done: number(done), total: number(total) };
}

const nothing: readonly Note[] = [];

/** What a run's log has beside its messages, by the number of messages before it. An unchanged list is the same object. */
export class RunNotes {
  readonly #notes = new Map<number, readonly Note[]>();
  /** Characters of the open message's text. */
  #text = 0;
  /** Milliseconds that a step took, by message and part. */
  readonly #steps = new Map<string, { readonly began: number; readonly ended: number }>();
  #questions = 0;
  #last: { readonly message: number; readonly note: Note } | undefined;
  #previousAt = 0;

  /** `run` is the state after the event, `at` the milliseconds of the record. */
  add(event: Event, run: Run, at: number): void {
    const message = run.output.length - (openMessage(run) === undefined ? 0 : 1);
    if (event.type === 'generic') this.#addNote(event.generic, message, run, at);
    else if (this.#last !== undefined) this.#end(at);
    if (event.type === 'message.created') this.#text = 0;
    if (event.type === 'run.awaiting') this.#questions += 1;
    if (event.type === 'message.part') {
      const { metadata, content = '' } = event.part;
      if (metadata?.kind === 'trajectory') {
        const part = (run.output[message]?.parts.length ?? 1) - 1;
        this.#steps.set(`${message}/${part}`, { began: this.#previousAt, ended: at });
      } else this.#text += content.length;
    }
    if ('run' in event && isFinal(event.run.status)) this.#endCalls();
    this.#previousAt = at;
  }

  /** The notes before or in a message, given its index in the output. */
  of(message: number): readonly Note[] {
    return this.#notes.get(message) ?? nothing;
  }

  stepTime(message: number, part: number): { readonly began: number; readonly ended: number } | undefined {
    return this.#steps.get(`${message}/${part}`);
  }

  #addNote(generic: Note['generic'], message: number, run: Run, at: number): void {
    const call = callOf(generic);
    if (call !== undefined && call.state !== 'began') {
      this.#endCall(call.path, generic);
      return;
    }
    const parts = openMessage(run)?.parts.length;
    const position = parts === undefined ? undefined : { parts, text: this.#text };
    if (this.#last !== undefined && continues(this.#last.note.generic, generic)) {
      this.#replace({ ...this.#last.note, generic, ended: at });
      return;
    }
    if (this.#last !== undefined) this.#end(at);
    const note = { generic, position, questions: this.#questions, began: at, ended: at };
    this.#notes.set(message, [...this.of(message), note].slice(-maxNotes));
    this.#last = progressOf(generic) === undefined ? undefined : { message, note };
  }

  /** The note of a call has the event of its end, with the time of its beginning. */
  #endCall(path: string, generic: Note['generic']): void {
    this.#changeCalls((note) =>
      callOf(note)?.path === path && note.began === undefined ? { ...generic, began: note.at } : note,
    );
  }

  /** A run that ends early takes its calls with it, without an event of each. */
  #endCalls(): void {
    this.#changeCalls((note) => (callOf(note)?.state === 'began' ? { ...note, state: 'cancelled' } : note));
  }

  #changeCalls(change: (generic: Note['generic']) => Note['generic']): void {
    for (const [message, notes] of this.#notes) {
      const changed = notes.map((note) => {
        const generic = change(note.generic);
        return generic === note.generic ? note : { ...note, generic };
      });
      if (changed.some((note, index) => note !== notes[index])) this.#notes.set(message, changed);
    }
  }

  /** Work is over when something else follows. */
  #end(at: number): void {
    if (this.#last !== undefined && !isDone(this.#last.note.generic)) this.#replace({ ...this.#last.note, ended: at });
    this.#last = undefined;
  }

  #replace(next: Note): void {
    if (this.#last === undefined) return;
    const { message, note } = this.#last;
    this.#notes.set(
      message,
      this.of(message).map((other) => (other === note ? next : other)),
    );
    this.#last = { message, note: next };
  }
}

export function isDone(generic: Note['generic']): boolean {
  const { done, total } = progressOf(generic) ?? {};
  return done !== undefined && total !== undefined && done >= total;
}

/** Whether a progress event goes on with the work of the one before it. */
function continues(before: Note['generic'], next: Note['generic']): boolean {
  const [from, to] = [progressOf(before), progressOf(next)];
  if (from === undefined || to === undefined || from.total !== to.total) return false;
  return from.done === undefined || to.done === undefined ? from.message === to.message : to.done >= from.done;
}

/** A piece of a run in the conversation. `position` is the number of messages before it. */
export type FlowItem = { readonly position: number } & (
  | { readonly kind: 'message'; readonly message: Message; readonly notes: readonly Note[] }
  | { readonly kind: 'question'; readonly question: Question; readonly open: boolean }
  | { readonly kind: 'notes'; readonly notes: readonly Note[] }
);

/** The messages and questions of a run, and its notes, in the order of its log. */
export function flowOf({ output, questions = [], await_request }: Run, recorded: RunNotes | undefined): FlowItem[] {
  const items: FlowItem[] = [];
  let asked = 0;
  for (let position = 0; position <= output.length; position += 1) {
    const all = recorded?.of(position) ?? [];
    const between = all.filter((note) => note.position === undefined);
    // The same list as before where all notes are in the message: views compare by identity.
    const within = between.length === 0 ? all : all.filter((note) => note.position !== undefined);
    const addNotes = (): void => {
      const notes = between.filter((note) => note.questions === asked);
      if (notes.length > 0) items.push({ kind: 'notes', position, notes });
    };
    addNotes();
    for (let question = questions[asked]; question?.position === position; question = questions[asked]) {
      asked += 1;
      const open = await_request !== undefined && asked === questions.length && question.reply === undefined;
      items.push({ kind: 'question', position, question, open });
      addNotes();
    }
    const message = output[position];
    if (message !== undefined) items.push({ kind: 'message', position, message, notes: within });
  }
  return items;
}
