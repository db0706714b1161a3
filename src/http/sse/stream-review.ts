import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { StreamMonitor } from './stream-monitor.ts';

/** Milliseconds between two looks at the credentials of all open streams. */
const reviewInterval = 1_000;

/** Ends open streams whose credentials hold no more. One timer serves all streams. */
export function reviewStreams(
  app: FastifyInstance,
  monitor: StreamMonitor,
  holds: (request: FastifyRequest) => boolean | Promise<boolean>,
): void {
  const timer = setInterval(() => monitor.review(holds), reviewInterval).unref();
  app.addHook('onClose', async () => clearInterval(timer));
}
