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
    // Requests may have any header: the clients of each protocol send their own, as `X-Stainless-*`.
    // Answers may be read whole: they carry no credentials.
    exposedHeaders: ['*'],
    maxAge: 600,
    strictPreflight: false,
  });
}
