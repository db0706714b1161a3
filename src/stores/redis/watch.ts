import type { Redis } from 'ioredis';
import type { Subscription } from '../remote/watchers.ts';
import { redisAway } from './unavailable.ts';

/** How often it is made sure of the subscription, and how soon the answer has to be there: in milliseconds. */
const checkEvery = 10_000;
const checkTimeout = 5_000;

/** Subscribes to a channel with a connection of its own, beside that of the store, whose settings it shares. */
export function subscribe(store: Redis, channel: string, hear: (text: string | undefined) => void): Subscription {
  // What the client subscribes to again by itself, it does not say; and where it cannot, nobody would catch that.
  const redis = store.duplicate({ lazyConnect: true, autoResubscribe: false, socketTimeout: checkTimeout });
  let subscribed = false;
  let checking: NodeJS.Timeout | undefined;
  let giveUp = (_error: unknown): void => {};
  const active = new Promise<void>((resolve, reject) => {
    giveUp = reject;
    let first = true;
    // The same for a new connection and for one that may be dead, or no longer allowed to hear.
    const make = async (): Promise<void> => {
      if (redis.status !== 'ready') return;
      try {
        await redis.subscribe(channel);
      } catch (error) {
        if (first && !redisAway(error)) reject(error);
        return;
      }
      if (subscribed) return;
      subscribed = true;
      if (first) resolve();
      else hear(undefined);
      first = false;
    };
    redis.on('ready', make).on('close', () => {
      subscribed = false;
    });
    checking = setInterval(make, checkEvery);
  });
  redis.on('message', (_channel, text) => hear(text)).on('error', () => {});
  redis.connect().catch(() => {});
  const close = async (): Promise<void> => {
    clearInterval(checking);
    giveUp(new Error('the store is closed'));
    redis.disconnect();
  };
  return { active, close };
}
