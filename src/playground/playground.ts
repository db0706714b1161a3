import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { type Client, createClient } from '../client/client.ts';
import { BrowserStorage } from './browser-storage.ts';
import { Catalog } from './catalog.ts';
import { Clock } from './clock.ts';
import { ConnectionState } from './connection.ts';
import { Conversation } from './conversation.ts';
import { Login } from './login.ts';
import { RequestLog } from './request-log.ts';
import { Router } from './router.ts';
import { type RunChanges, watchRunChanges } from './run-changes.ts';
import { RunList } from './run-list.ts';

/** Milliseconds; shorter than the client's default, because a person waits. */
const maxDelay = 5_000;

/** The state of the page. */
export class Playground {
  readonly connection = new ConnectionState();
  readonly login = new Login();
  readonly requests = new RequestLog(this.connection, this.login.ask);
  readonly client: Client = createClient({
    // The folder of the page is the server's URL, with its prefix.
    url: new URL('.', location.href).href,
    token: this.login.token,
    fetch: this.requests.fetch,
    // The page shows that it waits for the server.
    reconnect: { firstRetries: Number.POSITIVE_INFINITY, maxDelay, onBreak: this.connection.onBreak },
  });
  readonly router = new Router();
  readonly storage = new BrowserStorage();
  readonly catalog = new Catalog(this.client);
  readonly conversation = new Conversation(this);
  readonly clock = new Clock();
  readonly runChanges: RunChanges = watchRunChanges(this.client);
  /** The runs that wait for the reply of a person. */
  readonly awaiting = new RunList(this.client, this.runChanges, { status: 'awaiting' });

  /** Begins to poll and to listen. Returns a function that stops it. */
  start(): () => void {
    const listeners = [this.router.listen(), this.storage.listen()];
    const subscriptions = [this.catalog.poll(), this.conversation.start(), this.awaiting.start(), this.clock.start()];
    return () => {
      for (const stop of listeners) stop();
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
