import type { FastifyInstance } from 'fastify';
import { fail } from '../core/errors.ts';
import { handleError, pathOf } from './errors.ts';

interface Route {
  readonly path: RegExp;
  readonly methods: Set<string>;
}

/**
 * Answers requests that match no route: 405 with `Allow` where the path is that of a route that was registered later,
 * otherwise 404. Only such requests cost a search through all routes, about thirty.
 */
export function refuseUnknown(app: FastifyInstance): void {
  const routes = new Map<string, Route>();
  app.addHook('onRoute', ({ url, method }) => {
    const route = routes.get(url) ?? { path: patternOf(url), methods: new Set() };
    for (const name of [method].flat()) route.methods.add(name);
    routes.set(url, route);
  });
  app.setNotFoundHandler((request, reply) => {
    const path = pathOf(request);
    const methods = [...routes.values()]
      .filter((route) => route.path.test(path))
      .flatMap((route) => [...route.methods]);
    if (methods.length === 0 || methods.includes(request.method)) {
      return handleError(fail('route_unknown', request.method, path), request, reply);
    }
    const allowed = [...new Set(methods)].join(', ');
    reply.header('Allow', allowed);
    handleError(fail('method_unknown', request.method, path, allowed), request, reply);
  });
}

/** A route's URL, such as `/runs/:run_id`, as a pattern; a slash at its end is ignored. */
function patternOf(url: string): RegExp {
  const parts = url.replace(/\/$/, '').replace(/[.+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`^${parts.replace(/:\w+/g, '[^/]+').replace(/\*/g, '.*')}/?$`);
}
