import { MessageChannel } from 'node:worker_threads';

/**
 * Does the work of a test, and keeps the process alive until it has settled. All timers of an engine are unref'd, so a
 * process that waits for nothing but a time-out would end, and `node --test` would report the test as cancelled. An open
 * port keeps the process alive as a timer would, and no test fakes it.
 */
export async function keepAlive<T>(work: () => Promise<T>): Promise<T> {
  const { port1, port2 } = new MessageChannel();
  port1.on('message', () => undefined);
  try {
    return await work();
  } finally {
    port1.close();
    port2.close();
  }
}
