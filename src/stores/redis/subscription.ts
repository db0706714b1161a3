import type { Redis } from 'ioredis';
import type { Channels } from '../remote/channels.ts';
import type { Subscription } from '../remote/shared-subscription.ts';
import { isRedisUnavailable } from './errors.ts';

/** Milliseconds between checks of the subscription, and until an answer to a check counts as lost. */
const checkInterval = 10_000;
const checkTimeout = 5_000;

/** Subscribes to channels on a connection of its own, with the settings of the store's connection. */
export function subscribe(store: Redis, channels: Channels, onText: (text: string | undefined) => void): Subscription {
  // The client could subscribe again by itself, but it reports neither that nor a failure to do so.
  const redis = store.duplicate({ lazyConnect: true, autoResubscribe: false, socketTimeout: checkTimeout });
  let subscribed = false;
  let checking: NodeJS.Timeout | undefined;
  let rejectActive = (_error: unknown): void => {};
  const active = new Promise<void>((resolve, reject) => {
    rejectActive = reject;
    let first = true;
    const send = (join: readonly string[], leave: readonly string[]): Promise<unknown> =>
      Promise.all([
        ...(join.length > 0 ? [redis.subscribe(...join)] : []),
        ...(leave.length > 0 ? [redis.unsubscribe(...leave)] : []),
      ]);
    // Subscribes on a new connection. On an open one it checks that the connection lives.
    const subscribeAgain = async (): Promise<void> => {
      if (redis.status !== 'ready') return;
      try {
        if (subscribed) await redis.ping();
        else await channels.connect(send);
      } catch (error) {
        if (first && !isRedisUnavailable(error)) reject(error);
        return;
      }
      if (subscribed) return;
      subscribed = true;
      if (first) resolve();
      else onText(undefined);
      first = false;
    };
    redis.on('ready', subscribeAgain).on('close', () => {
      subscribed = false;
    });
    checking = setInterval(subscribeAgain, checkInterval);
  });
  redis.on('message', (_channel, text) => onText(text)).on('error', () => {});
  redis.connect().catch(() => {});
  const close = async (): Promise<void> => {
    clearInterval(checking);
    rejectActive(new Error('the store is closed'));
    redis.disconnect();
  };
  return { active, close };
}
