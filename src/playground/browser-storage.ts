import { signal } from '@preact/signals';
import type { MessagePart } from '../client/client.ts';

export interface StoredSession {
  readonly id: string;
  readonly agent: string;
  readonly title: string;
  /** ISO 8601 */
  readonly createdAt: string;
}

const sessionsKey = 'rivulet.sessions';
const inputsKey = 'rivulet.inputs';
const maxSessions = 50;
const maxInputs = 200;
/** Characters of a part. The content of a longer part is not stored. */
const maxContent = 4_000;

/** Sessions and inputs in the browser's local storage, which all tabs share. */
export class BrowserStorage {
  readonly sessions = signal<readonly StoredSession[]>(load(sessionsKey, []));
  /** By run id. The server keeps the input of a run only when the run has completed. */
  readonly inputs = signal<Readonly<Record<string, readonly MessagePart[]>>>(load(inputsKey, {}));

  /** Listens to changes by other tabs. Returns a function that stops it. */
  listen(): () => void {
    const onStorage = ({ key }: StorageEvent): void => {
      if (key === sessionsKey) this.sessions.value = load(sessionsKey, []);
      if (key === inputsKey) this.inputs.value = load(inputsKey, {});
    };
    addEventListener('storage', onStorage);
    return () => removeEventListener('storage', onStorage);
  }

  addSession(session: StoredSession): void {
    const known = this.sessions.value.find(({ id }) => id === session.id);
    const others = this.sessions.value.filter(({ id }) => id !== session.id);
    this.sessions.value = [{ ...session, title: known?.title ?? session.title }, ...others].slice(0, maxSessions);
    save(sessionsKey, this.sessions.value);
  }

  removeSession(id: string): void {
    this.sessions.value = this.sessions.value.filter((session) => session.id !== id);
    save(sessionsKey, this.sessions.value);
  }

  /** Stores inputs by run id. */
  addInputs(inputs: Readonly<Record<string, readonly MessagePart[]>>): void {
    const added = Object.entries(inputs).map(([run_id, parts]) => [run_id, parts.map(withoutLongContent)] as const);
    this.inputs.value = Object.fromEntries([...Object.entries(this.inputs.value), ...added].slice(-maxInputs));
    save(inputsKey, this.inputs.value);
  }
}

const withoutLongContent = ({ content, ...part }: MessagePart): MessagePart =>
  content === undefined || content.length > maxContent ? part : { ...part, content };

function load<T>(key: string, empty: T): T {
  try {
    return JSON.parse(localStorage.getItem(key) ?? '') ?? empty;
  } catch {
    return empty;
  }
}

function save(key: string, value: unknown): void {
  try {
    localStorage.setItem(key, JSON.stringify(value));
  } catch {
    // The storage is full or forbidden: the page works without it.
  }
}
