import { signal } from '@preact/signals';
import type { MessagePart } from '../client/client.ts';

export interface RememberedSession {
  readonly id: string;
  readonly agent: string;
  readonly title: string;
  /** ISO 8601 */
  readonly at: string;
}

const sessionsKey = 'rivulet.sessions';
const inputsKey = 'rivulet.inputs';
const mostSessions = 50;
const mostInputs = 200;
/** Characters of a part; of a larger one only the name is remembered. */
const largestPart = 4_000;

/** What this browser remembers, for all of its tabs: the conversations held, and what was said in them. */
export class Memory {
  readonly sessions = signal<readonly RememberedSession[]>(load(sessionsKey, []));
  /** By run: the server keeps what a run was given only when it has completed. */
  readonly inputs = signal<Readonly<Record<string, readonly MessagePart[]>>>(load(inputsKey, {}));

  /** Begins to hear of what other tabs remember; returns how to stop. */
  begin(): () => void {
    const changed = ({ key }: StorageEvent): void => {
      if (key === sessionsKey) this.sessions.value = load(sessionsKey, []);
      if (key === inputsKey) this.inputs.value = load(inputsKey, {});
    };
    addEventListener('storage', changed);
    return () => removeEventListener('storage', changed);
  }

  session(session: RememberedSession): void {
    const known = this.sessions.value.find(({ id }) => id === session.id);
    const others = this.sessions.value.filter(({ id }) => id !== session.id);
    this.sessions.value = [{ ...session, title: known?.title ?? session.title }, ...others].slice(0, mostSessions);
    save(sessionsKey, this.sessions.value);
  }

  forget(id: string): void {
    this.sessions.value = this.sessions.value.filter((one) => one.id !== id);
    save(sessionsKey, this.sessions.value);
  }

  /** Remembers what runs were given, by their ids. */
  said(inputs: Readonly<Record<string, readonly MessagePart[]>>): void {
    const more = Object.entries(inputs).map(([run_id, parts]) => [run_id, parts.map(light)] as const);
    this.inputs.value = Object.fromEntries([...Object.entries(this.inputs.value), ...more].slice(-mostInputs));
    save(inputsKey, this.inputs.value);
  }
}

const light = ({ content, ...part }: MessagePart): MessagePart =>
  content === undefined || content.length > largestPart ? part : { ...part, content };

function load<T>(key: string, nothing: T): T {
  try {
    return JSON.parse(localStorage.getItem(key) ?? '') ?? nothing;
  } catch {
    return nothing;
  }
}

function save(key: string, value: unknown): void {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // It is full or forbidden: the page works, and forgets.
  }
}
