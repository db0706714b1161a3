import { signal } from '@preact/signals';
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { filter, fromEvent, interval, merge } from 'rxjs';
import { type Client, createClient } from '../../client/client.ts';
import { Conversation } from '../conversation/conversation.ts';
import { type RunChanges, RunList, watchRunChanges } from '../runs/run-list.ts';
import { Login, StoredSessions } from './browser-storage.ts';
import { Catalog } from './catalog.ts';
import { Connection } from './connection.ts';
import { Router } from './router.ts';

/** Milliseconds; shorter than the client's default, because a person waits. */
const maxDelay = 5_000;
const tick = 1_000; // milliseconds

/** The state of the page. */
export class Playground {
  readonly login = new Login();
  readonly connection = new Connection(this.login.ask);
  readonly client: Client = createClient({
    // The folder of the page is the server's URL, with its prefix.
    url: new URL('.', location.href).href,
    token: this.login.token,
    fetch: this.connection.fetch,
    // The page shows that it waits for the server.
    reconnect: { firstRetries: Number.POSITIVE_INFINITY, maxDelay, onBreak: this.connection.onBreak },
  });
  readonly router = new Router();
  readonly storage = new StoredSessions();
  readonly catalog = new Catalog(this.client);
  readonly conversation = new Conversation(this);
  readonly runChanges: RunChanges = watchRunChanges(this.client);
  /** The runs that wait for the reply of a person. */
  readonly awaiting = new RunList(this.client, this.runChanges, { status: 'awaiting' });
  /** Milliseconds since 1970, renewed each second while the tab is visible, and when it is shown: for ages and durations. */
  readonly now = signal(Date.now());

  /** Begins to poll and to listen. Returns a function that stops it. */
  start(): () => void {
    // A browser may throttle the timers of a hidden tab, so the next tick after it is shown may be a minute away.
    const ticks = merge(interval(tick), fromEvent(document, 'visibilitychange')).pipe(
      filter(() => document.visibilityState === 'visible'),
    );
    const subscriptions = [
      this.router.follow(),
      this.storage.follow(),
      this.catalog.poll(),
      this.conversation.start(),
      this.awaiting.start(),
      ticks.subscribe(() => {
        this.now.value = Date.now();
      }),
    ];
    return () => {
      for (const subscription of subscriptions) subscription.unsubscribe();
    };
  }
}

const context = createContext<Playground | undefined>(undefined);
export const PlaygroundProvider = context.Provider;

export function usePlayground(): Playground {
  const playground = useContext(context);
  if (playground === undefined) throw new Error('usePlayground needs a PlaygroundProvider around the component.');
  return playground;
}
