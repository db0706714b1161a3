import { signal } from '@preact/signals';
import {
  catchError,
  defer,
  EMPTY,
  exhaustMap,
  filter,
  merge,
  type Observable,
  Subject,
  type Subscription,
  timer,
} from 'rxjs';
import type { AgentManifest, Client } from '../../client/client.ts';

const pollInterval = 5_000; // milliseconds

/** The bundled agent that shows all that an agent can do, and needs nothing: listed first. */
const tour = 'demo';

/** Ticks while the tab is visible. */
const pollWhileVisible = (milliseconds: number): Observable<number> =>
  timer(0, milliseconds).pipe(filter((tick) => tick === 0 || document.visibilityState === 'visible'));

/** The agents of the server with their statistics. */
export class Catalog {
  /** Undefined until the first response. */
  readonly agents = signal<readonly AgentManifest[] | undefined>(undefined);
  readonly #client: Client;
  readonly #refresh = new Subject<void>();

  constructor(client: Client) {
    this.#client = client;
  }

  poll(): Subscription {
    const load = defer(() => this.#client.agents()).pipe(catchError(() => EMPTY));
    return merge(pollWhileVisible(pollInterval), this.#refresh)
      .pipe(exhaustMap(() => load))
      .subscribe((agents) => {
        this.agents.value = agents.toSorted((a, b) => Number(b.name === tour) - Number(a.name === tour));
      });
  }

  /** Loads the statistics again, for example after the end of a run. */
  refresh(): void {
    this.#refresh.next();
  }

  find(name: string | undefined): AgentManifest | undefined {
    return this.agents.value?.find((agent) => agent.name === name);
  }
}

export interface SamplePrompt {
  readonly title: string;
  readonly prompt: string;
}

/** Prompts that a card shows. */
const maxPrompts = 4;

/** The examples of a manifest. A text is also its title. */
export const promptsOf = ({ metadata = {} }: AgentManifest): SamplePrompt[] =>
  (metadata.examples ?? [])
    .slice(0, maxPrompts)
    .map((example) => (typeof example === 'string' ? { title: example, prompt: example } : example));
