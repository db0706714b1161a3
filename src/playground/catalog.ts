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
import type { AgentManifest, Client } from '../client/client.ts';

const every = 5_000; // milliseconds

/** Ticks while somebody looks: a tab in the background asks for nothing. */
export const whileSeen = (milliseconds: number): Observable<number> =>
  timer(0, milliseconds).pipe(filter((tick) => tick === 0 || document.visibilityState === 'visible'));

/** The agents with their figures; undefined until they are known. */
export class Catalog {
  readonly agents = signal<readonly AgentManifest[] | undefined>(undefined);
  readonly #client: Client;
  readonly #again = new Subject<void>();

  constructor(client: Client) {
    this.#client = client;
  }

  begin(): Subscription {
    const ask = defer(() => this.#client.agents()).pipe(catchError(() => EMPTY));
    return merge(whileSeen(every), this.#again)
      .pipe(exhaustMap(() => ask))
      .subscribe((agents) => {
        this.agents.value = agents;
      });
  }

  /** The figures have changed: a run is over. */
  refresh(): void {
    this.#again.next();
  }

  find(name: string | undefined): AgentManifest | undefined {
    return this.agents.value?.find((agent) => agent.name === name);
  }
}
