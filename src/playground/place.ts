import { signal } from '@preact/signals';

/** What is looked at; on a wide window some of them stand beside each other. */
export type View = 'agents' | 'chat' | 'inspect' | 'runs';

/** Where the page is. It is in the address, so that a reload, a bookmark and another tab come to the same place. */
export interface Place {
  readonly view: View;
  readonly agent?: string | undefined;
  readonly session?: string | undefined;
  readonly run?: string | undefined;
}

const views: readonly string[] = ['agents', 'chat', 'inspect', 'runs'] satisfies View[];
const isView = (text: string | null): text is View => text !== null && views.includes(text);

function parsePlace(hash: string): Place {
  const values = new URLSearchParams(hash.replace(/^#/, ''));
  const view = values.get('view');
  const given = (name: string): string | undefined => values.get(name) ?? undefined;
  return { view: isView(view) ? view : 'chat', agent: given('agent'), session: given('session'), run: given('run') };
}

function hashOf(place: Place): string {
  const values = new URLSearchParams();
  for (const key of ['agent', 'session', 'run'] as const) if (place[key] !== undefined) values.set(key, place[key]);
  if (place.view !== 'chat') values.set('view', place.view);
  return `#${values}`;
}

/** The address as a signal. */
export class Places {
  readonly now = signal<Place>(parsePlace(location.hash));

  /** Begins to follow the address; returns how to stop. */
  begin(): () => void {
    const moved = (): void => {
      this.now.value = parsePlace(location.hash);
    };
    addEventListener('hashchange', moved);
    return () => removeEventListener('hashchange', moved);
  }

  /** The address of a place that differs from this one by that much. */
  href(change: Partial<Place>): string {
    return hashOf({ ...this.now.value, ...change });
  }

  go(change: Partial<Place>): void {
    location.hash = this.href(change);
    // Now, and not when the event comes: who goes somewhere goes on from there.
    this.now.value = parsePlace(location.hash);
  }

  /** Says more exactly where the page is: nothing that "back" should come back to. */
  refine(change: Partial<Place>): void {
    history.replaceState(null, '', this.href(change));
    this.now.value = parsePlace(location.hash);
  }
}
