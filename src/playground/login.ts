import { signal } from '@preact/signals';

const tokenKey = 'rivulet.token';

/**
 * The key or token with which the page calls the server. It is kept until the tab is closed, and is not shared with other
 * tabs. Another token is another person to the server, so the page is loaded again with it.
 */
export class Login {
  readonly token: string = load();
  /** Whether the server has refused a request for want of a token, or refused the token. */
  readonly isAsked = signal(false);

  readonly ask = (): void => {
    this.isAsked.value = true;
  };

  use(token: string): void {
    save(token.trim());
    location.reload();
  }

  forget(): void {
    this.use('');
  }
}

function load(): string {
  try {
    return sessionStorage.getItem(tokenKey) ?? '';
  } catch {
    return '';
  }
}

function save(token: string): void {
  try {
    if (token === '') sessionStorage.removeItem(tokenKey);
    else sessionStorage.setItem(tokenKey, token);
  } catch {
    // The storage is forbidden: the page asks again.
  }
}
