import { signal } from '@preact/signals';
import { fromEvent, type Subscription } from 'rxjs';

/** The parts of the page. A narrow window shows one; a wide window shows a conversation with its inspector. */
const views = ['agents', 'chat', 'inspect', 'runs', 'awaiting'] as const;
export type View = (typeof views)[number];

/** The state of the page that is in its URL, so that reloads, bookmarks and other tabs restore it. */
export interface Route {
  readonly view: View;
  readonly agent?: string | undefined;
  readonly session?: string | undefined;
  readonly run?: string | undefined;
  /** A text for the message box, of a link. It is shown, not sent. */
  readonly prompt?: string | undefined;
  /** The filters of the table of runs. */
  readonly ofAgent?: string | undefined;
  readonly status?: string | undefined;
  readonly search?: string | undefined;
}

/** The view that is shown: without an agent or a run there is no conversation and nothing to inspect. */
export const shownView = ({ view, agent, run }: Route): View =>
  (view === 'chat' || view === 'inspect') && agent === undefined && run === undefined ? 'agents' : view;

const places = ['agent', 'session', 'run', 'prompt'] as const;
const filters = ['ofAgent', 'status', 'search'] as const;

function parseHash(hash: string): Route {
  const values = new URLSearchParams(hash.replace(/^#/, ''));
  const given = [...places, ...filters].map((key) => [key, values.get(key) || undefined] as const);
  const view = views.find((one) => one === values.get('view')) ?? 'chat';
  return { view, ...Object.fromEntries(given) };
}

function hashOf(route: Route): string {
  const values = new URLSearchParams();
  // Other views have nothing to filter: a link back to the runs shows all of them.
  for (const key of route.view === 'runs' ? [...places, ...filters] : places) {
    if (route[key]) values.set(key, route[key]);
  }
  if (route.view !== 'chat') values.set('view', route.view);
  return `#${values}`;
}

/** The page's URL as a signal. */
export class Router {
  readonly route = signal<Route>(parseHash(location.hash));

  /** Follows the changes of the URL. */
  follow(): Subscription {
    return fromEvent(globalThis, 'hashchange').subscribe(() => {
      this.route.value = parseHash(location.hash);
    });
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
