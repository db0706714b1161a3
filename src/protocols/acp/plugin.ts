import type { FastifyPluginAsync } from 'fastify';
import type { Engine } from '../../engine/engine.ts';
import type { Responder } from '../../http/respond.ts';
import { agentRoutes } from './agents.ts';
import { runRoutes, storedRunRoutes } from './runs.ts';
import { sessionRoutes } from './sessions.ts';

export interface AcpOptions {
  readonly engine: Engine;
  readonly responder: Responder;
  /** The prefix as clients see it, for links. */
  readonly base: string;
}

/** The Agent Communication Protocol over an engine. `docs/` and the OpenAPI document describe each call. */
export const acp: FastifyPluginAsync<AcpOptions> = async (app, options) => {
  await app.register(agentRoutes, options);
  await app.register(runRoutes, options);
  await app.register(storedRunRoutes, options);
  await app.register(sessionRoutes, options);
};
