import type { Redis } from 'ioredis';
import { backoff, Delay } from '../../core/timing.ts';
import type { Channels } from '../remote/channels.ts';
import type { Subscription } from '../remote/shared-subscription.ts';
import { isMember, type RedisClient, subscriberOf } from './connection.ts';
import { isRedisUnavailable } from './errors.ts';

/** Milliseconds between checks of the subscription, and until an answer to a check counts as lost. */
const checkInterval = 10_000;
const checkTimeout = 5_000;

/** Subscribes to channels on a connection of its own. A lost connection is replaced by another one. */
export function subscribe(
  store: RedisClient,
  channels: Channels,
  onText: (text: string | undefined) => void,
): Subscription {
  let redis: Redis | undefined;
  let subscribed = false;
  const delay = new Delay();
  let isFirst = true;
  let failures = 0;
  let resolve = (): void => {};
  let reject = (_error: unknown): void => {};
  const active = new Promise<void>((onActive, onRefused) => {
    resolve = onActive;
    reject = onRefused;
  });

  // Subscribes on a new connection. On an open one it checks that the connection lives, and that its server is still a member.
  const subscribeAgain = async (): Promise<void> => {
    const one = redis;
    if (one?.status !== 'ready') return;
    const send = (join: readonly string[], leave: readonly string[]): Promise<unknown> =>
      Promise.all([
        ...(join.length > 0 ? [one.subscribe(...join)] : []),
        ...(leave.length > 0 ? [one.unsubscribe(...leave)] : []),
      ]);
    try {
      if (!isMember(store, one)) one.disconnect();
      else if (subscribed) await one.ping();
      else await channels.connect(send);
    } catch (error) {
      if (isFirst && !isRedisUnavailable(error)) reject(error);
      return;
    }
    if (subscribed || one !== redis || one.status !== 'ready') return;
    subscribed = true;
    failures = 0;
    if (isFirst) resolve();
    else onText(undefined);
    isFirst = false;
  };
  const openLater = async (): Promise<void> => {
    failures += 1;
    await delay.wait(backoff(failures));
    if (!delay.closed) open();
  };
  const open = (): void => {
    try {
      redis = subscriberOf(store, { socketTimeout: checkTimeout });
    } catch {
      void openLater();
      return;
    }
    redis
      .on('ready', subscribeAgain)
      .on('message', (_channel, text) => onText(text))
      .on('error', () => {})
      .once('end', () => {
        subscribed = false;
        void openLater();
      });
    redis.connect().catch(() => {});
  };
  open();
  const checking = setInterval(subscribeAgain, checkInterval);
  const close = async (): Promise<void> => {
    delay.close();
    clearInterval(checking);
    reject(new Error('the store is closed'));
    redis?.disconnect();
  };
  return { active, close };
}
