import { once } from 'node:events';
import { expect } from 'vitest';
import { defineAgent, type ServerOptions, textOf } from '../../../src/index.ts';
import { deferred } from '../../support/deferred.ts';
import { serve } from '../../support/serve.ts';

/** A server with the agent `chat`, whose slow tool ends when a test lets it. */
export interface Chats {
  readonly url: string;
  /** Resolves once the slow tool works. */
  readonly working: () => Promise<void>;
  /** How often the slow tool has begun. */
  readonly begun: () => number;
  /** Lets the slow tool end, now and from now on. */
  readonly release: () => void;
}

/** What a user says in the three turns. */
export const turns = ['weather', 'pay', 'write'] as const;

/** The text of the last turn, whose model is cut off. */
export const half = 'Once upon';

/** Starts a server for one conversation, or more. */
export type ServeChats = () => Promise<Chats>;

export async function serveChats(options: Partial<ServerOptions> = {}): Promise<Chats> {
  let count = 0;
  const [work, begun] = [deferred(), deferred()];
  const chat = defineAgent(
    { name: 'chat', description: 'Has a slow tool, one that fails, an approval, and a model that is cut off.' },
    async function* (input, context) {
      const said = textOf(input.at(-1) ?? { parts: [] });
      if (said.includes('weather')) {
        const { degrees } = yield* context.tool('weather', { city: 'Oslo' }, async () => {
          count += 1;
          begun.resolve();
          const stopped = once(context.signal, 'abort');
          await Promise.race([work.promise, stopped]);
          return { degrees: 20 };
        });
        yield `It is ${degrees} degrees.`;
      } else if (said.includes('pay')) {
        const { message } = await context.await('Pay 5?', { schema: { type: 'boolean' } });
        try {
          yield* context.tool('pay', { amount: 5 }, () => {
            throw new Error('The card was refused.');
          });
        } catch {
          yield `I could not pay, although you said ${textOf(message)}.`;
        }
      } else {
        yield half;
        yield { role: 'agent', parts: [], finish_reason: 'length' } as const;
      }
    },
  );
  const { url } = await serve([chat], { ...options, playground: false, docs: false });
  return { url, working: () => begun.promise, begun: () => count, release: work.resolve };
}

/** Resolves once the turn that was asked for anew works, waits for the stopped one, or is over. */
export async function askedAnew(chats: Chats, anew: Promise<unknown>): Promise<void> {
  let over = false;
  void anew.finally(() => {
    over = true;
  });
  await expect.poll(async () => over || chats.begun() > 1 || (await statesOf(chats)).includes('created')).toBe(true);
}

/** The states of the runs, the oldest first. */
export async function statesOf({ url }: Pick<Chats, 'url'>): Promise<string[]> {
  const { runs }: { runs: { status: string }[] } = await (await fetch(`${url}/runs`)).json();
  return runs.map(({ status }) => status).reverse();
}

const ends = ['completed', 'failed', 'cancelled'];

/** What has become of all runs, once they have ended. */
export async function runsOf(chats: Pick<Chats, 'url'>): Promise<string> {
  await expect.poll(async () => (await statesOf(chats)).every((state) => ends.includes(state))).toBe(true);
  return `runs: ${(await statesOf(chats)).join(', ')}`;
}
