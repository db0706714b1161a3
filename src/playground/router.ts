import { signal } from '@preact/signals';

/** The part of the page that a narrow window shows; a wide window shows several. */
export type View = 'agents' | 'chat' | 'inspect' | 'runs';

/** The state of the page that is in its URL, so that reloads, bookmarks and other tabs restore it. */
export interface Route {
  readonly view: View;
  readonly agent?: string | undefined;
  readonly session?: string | undefined;
  readonly run?: string | undefined;
}

const views: readonly string[] = ['agents', 'chat', 'inspect', 'runs'] satisfies View[];
const isView = (text: string | null): text is View => text !== null && views.includes(text);

function parseHash(hash: string): Route {
  const values = new URLSearchParams(hash.replace(/^#/, ''));
  const view = values.get('view');
  const value = (name: string): string | undefined => values.get(name) ?? undefined;
  return { view: isView(view) ? view : 'chat', agent: value('agent'), session: value('session'), run: value('run') };
}

function hashOf(route: Route): string {
  const values = new URLSearchParams();
  for (const key of ['agent', 'session', 'run'] as const) if (route[key] !== undefined) values.set(key, route[key]);
  if (route.view !== 'chat') values.set('view', route.view);
  return `#${values}`;
}

/** The page's URL as a signal. */
export class Router {
  readonly route = signal<Route>(parseHash(location.hash));

  /** Listens to changes of the URL. Returns a function that stops it. */
  listen(): () => void {
    const onHashChange = (): void => {
      this.route.value = parseHash(location.hash);
    };
    addEventListener('hashchange', onHashChange);
    return () => removeEventListener('hashchange', onHashChange);
  }

  /** The URL of the current route with some changes. */
  href(change: Partial<Route>): string {
    return hashOf({ ...this.route.value, ...change });
  }

  /** Changes the route and adds an entry to the browser's history. */
  push(change: Partial<Route>): void {
    location.hash = this.href(change);
    // At once: the event arrives later, and the caller may change the route again before.
    this.route.value = parseHash(location.hash);
  }

  /** Changes the route without an entry in the browser's history. */
  replace(change: Partial<Route>): void {
    history.replaceState(null, '', this.href(change));
    this.route.value = parseHash(location.hash);
  }
}
