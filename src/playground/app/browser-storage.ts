import { signal } from '@preact/signals';
import { fromEvent, type Subscription } from 'rxjs';

const sessionsKey = 'rivulet.sessions';
const maxSessions = 50;
const tokenKey = 'rivulet.token';

export interface StoredSession {
  readonly id: string;
  readonly agent: string;
  readonly title: string;
  /** ISO 8601 */
  readonly createdAt: string;
}

/** Sessions in the browser's local storage, which all tabs share. */
export class StoredSessions {
  readonly list = signal<readonly StoredSession[]>(loadSessions());

  /** Follows the changes of other tabs. */
  follow(): Subscription {
    return fromEvent<StorageEvent>(globalThis, 'storage').subscribe(({ key }) => {
      if (key === sessionsKey) this.list.value = loadSessions();
    });
  }

  /** Puts a session first. One that is in the list keeps its title. */
  add(session: StoredSession): void {
    const { title } = this.list.value.find(({ id }) => id === session.id) ?? session;
    const others = this.list.value.filter(({ id }) => id !== session.id);
    this.#save([{ ...session, title }, ...others].slice(0, maxSessions));
  }

  remove(id: string): void {
    this.#save(this.list.value.filter((session) => session.id !== id));
  }

  #save(sessions: readonly StoredSession[]): void {
    this.list.value = sessions;
    ifAllowed(() => localStorage.setItem(sessionsKey, JSON.stringify(sessions)));
  }
}

/**
 * The key or token with which the page calls the server. It is kept until the tab is closed, and is not shared with other
 * tabs. Another token is another person to the server, so the page is loaded again with it.
 */
export class Login {
  readonly token: string = ifAllowed(() => sessionStorage.getItem(tokenKey)) ?? '';
  /** Whether the server has refused a request for want of a token, or refused the token. */
  readonly isAsked = signal(false);

  readonly ask = (): void => {
    this.isAsked.value = true;
  };

  use(token: string): void {
    ifAllowed(() => sessionStorage.setItem(tokenKey, token.trim()));
    location.reload();
  }

  forget(): void {
    ifAllowed(() => sessionStorage.removeItem(tokenKey));
    location.reload();
  }
}

const loadSessions = (): readonly StoredSession[] =>
  ifAllowed(() => JSON.parse(localStorage.getItem(sessionsKey) ?? 'null')) ?? [];

/** The page works without a storage that is full, forbidden or has other content. */
function ifAllowed<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
