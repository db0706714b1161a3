import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { type Client, createClient } from '../client/client.ts';
import { Calls } from './calls.ts';
import { Catalog } from './catalog.ts';
import { Conversation } from './conversation.ts';
import { Line } from './line.ts';
import { Memory } from './memory.ts';
import { Places } from './place.ts';

/** Milliseconds: somebody sits in front of it, and should not wait for long. */
const maxDelay = 5_000;

/** All that the page knows. */
export class Playground {
  readonly line = new Line();
  readonly calls = new Calls(this.line);
  readonly client: Client = createClient({
    // Where the page is, without its file: the server's address, whatever the prefix.
    url: new URL('.', location.href).href,
    fetch: this.calls.fetch,
    reconnect: { maxDelay, onBreak: this.line.broke },
  });
  readonly places = new Places();
  readonly memory = new Memory();
  readonly catalog = new Catalog(this.client);
  readonly conversation = new Conversation(this);

  /** Begins to ask and to listen; returns how to stop. */
  begin(): () => void {
    const stops = [this.places.begin(), this.memory.begin()];
    const running = [this.catalog.begin(), this.conversation.begin()];
    return () => {
      for (const stop of stops) stop();
      for (const one of running) one.unsubscribe();
    };
  }
}

const context = createContext<Playground | undefined>(undefined);
export const PlaygroundProvider = context.Provider;

export function usePlayground(): Playground {
  const playground = useContext(context);
  if (playground === undefined) throw new Error('A component of the playground stands outside of it.');
  return playground;
}
