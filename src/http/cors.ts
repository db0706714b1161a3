import type { FastifyInstance } from 'fastify';

/**
 * Lets pages of the allowed origins read answers: adds the headers of CORS, and answers preflights. Without origins, it
 * adds nothing. Without credentials: callers send keys in headers, and cookies are for pages of the same site.
 */
export async function answerOrigins(app: FastifyInstance, allowedOrigins: readonly string[] = []): Promise<void> {
  if (allowedOrigins.length === 0) return;
  const { default: cors } = await import('@fastify/cors');
  await app.register(cors, {
    origin: allowedOrigins.includes('*') ? '*' : allowedOrigins.map((text) => new URL(text).origin),
    methods: ['GET', 'HEAD', 'POST', 'DELETE'],
    allowedHeaders: [
      'Authorization',
      'Content-Type',
      'Idempotency-Key',
      'If-Busy',
      'Last-Event-ID',
      'On-Disconnect',
      'Rivulet-Channel',
      'X-API-Key',
      'traceparent',
      'tracestate',
    ],
    exposedHeaders: [
      'Location',
      'RateLimit',
      'RateLimit-Policy',
      'Retry-After',
      'Rivulet-Warning',
      'Run-ID',
      'WWW-Authenticate',
      'X-Request-Id',
    ],
    maxAge: 600,
    strictPreflight: false,
  });
}
