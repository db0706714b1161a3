import { signal } from '@preact/signals';

export interface StoredSession {
  readonly id: string;
  readonly agent: string;
  readonly title: string;
  /** ISO 8601 */
  readonly createdAt: string;
}

const sessionsKey = 'rivulet.sessions';
const maxSessions = 50;

/** Sessions in the browser's local storage, which all tabs share. */
export class BrowserStorage {
  readonly sessions = signal<readonly StoredSession[]>(load(sessionsKey, []));

  /** Listens to changes by other tabs. Returns a function that stops it. */
  listen(): () => void {
    const onStorage = ({ key }: StorageEvent): void => {
      if (key === sessionsKey) this.sessions.value = load(sessionsKey, []);
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
}

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
