import type { FastifyInstance } from 'fastify';
import { firstValueFrom, toArray } from 'rxjs';
import { onTestFinished } from 'vitest';
import type { Principal } from '../../src/core/principal.ts';
import { createServer, type RivuletOptions, type Run } from '../../src/index.ts';
import { agent, askOnce, echo, never } from './agents.ts';
import { ask } from './serve.ts';

/** Says whose run it is, how many messages came before, and the state; stores its input as the state. */
const remembers = agent('remembers', async (input, { session, principal }) => {
  const history = await firstValueFrom(session.history.pipe(toArray()));
  const before = await session.state<string>();
  await session.setState(input[0]?.parts[0]?.content);
  return `${principal?.id}: ${history.length} before, state ${before}`;
});

/** Where tests make more requests than a caller may make. */
export const unlimited = { requestsPerMinute: 0, runsPerMinute: 0 };

export interface Answer {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly text: string;
}

export interface Request {
  readonly method?: string;
  readonly headers?: Record<string, string>;
  readonly body?: object;
}

/** The calls of one principal to a node. */
export type Caller = (path: string, request?: Request) => Promise<Answer>;

const all = ['agents:read', 'runs:read', 'runs:write', 'sessions:read', 'sessions:write'];
const principals: Record<string, Principal> = {
  alice: { kind: 'custom', id: 'alice', scopes: all },
  bob: { kind: 'custom', id: 'bob', scopes: all },
  carl: { kind: 'custom', id: 'carl', scopes: all },
  carol: { kind: 'custom', id: 'carol', tenant: 'acme', scopes: all, agents: ['e*'] },
  dave: { kind: 'custom', id: 'https://issuer dave', tenant: 'acme', scopes: all },
  root: { kind: 'custom', id: 'root', scopes: ['admin'] },
};

/** A node whose requests name their principal in the header `as`. */
export class TenantNode {
  readonly app: FastifyInstance;
  readonly url: string;

  private constructor(app: FastifyInstance, url: string) {
    this.app = app;
    this.url = url;
  }

  static async open(options: Partial<RivuletOptions>): Promise<TenantNode> {
    const webhooks = { secrets: ['the secret of the webhooks of tests'] };
    const app = await createServer({
      agents: [echo, askOnce, never, remembers],
      webhooks,
      auth: { authenticate: ({ headers }) => principals[String(headers.as)] },
      ...options,
      limits: { shutdownGrace: 0, ...options.limits },
    });
    return new TenantNode(app, await app.listen({ port: 0, host: '127.0.0.1' }));
  }

  as(name: string): Caller {
    return async (path, { method = 'GET', headers = {}, body } = {}) => {
      const type: Record<string, string> = body === undefined ? {} : { 'content-type': 'application/json' };
      const response = await fetch(`${this.url}${path}`, {
        method,
        headers: { as: name, ...type, ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      return { status: response.status, headers: Object.fromEntries(response.headers), text: await response.text() };
    };
  }
}

/** The same, closed when the test is over. */
export async function tenantNode(options: Partial<RivuletOptions> = {}): Promise<TenantNode> {
  const node = await TenantNode.open(options);
  onTestFinished(() => node.app.close());
  return node;
}

/** Creates a run, and returns it as it answers the request. */
export async function create(caller: Caller, name: string, more: object = {}, headers = {}): Promise<Run> {
  const { text } = await caller('/runs', { method: 'POST', body: ask(name, 'hi', more), headers });
  return JSON.parse(text);
}

/** What a principal has, by the name of the path parameter that it stands for. */
export interface Belongings {
  readonly run_id: readonly string[];
  readonly session_id: readonly string[];
  readonly resource_id: readonly string[];
  readonly delivery_id: readonly string[];
}

/** Runs in each state, a session with messages and a state, and their resources. */
export async function belongingsOf(caller: Caller): Promise<Belongings> {
  // It is private: the webhook fails, and stays in the outbox.
  const first = await create(caller, 'remembers', { webhook: { url: 'https://127.0.0.1:9/' } });
  const { session_id = '' } = first;
  const others = [
    await create(caller, 'echo', { session_id }),
    await create(caller, 'ask', { session_id }),
    await create(caller, 'never', { session_id, mode: 'async' }),
  ];
  const { history, state }: { history: string[]; state: string } = JSON.parse(
    (await caller(`/sessions/${session_id}`)).text,
  );
  const resources = [...history, state].map((url) => url.slice(-36));
  const { deliveries } = JSON.parse((await caller('/deliveries')).text);
  return {
    run_id: [first, ...others].map(({ run_id }) => run_id),
    session_id: [session_id],
    resource_id: resources,
    delivery_id: deliveries.map(({ delivery_id }: { delivery_id: string }) => delivery_id),
  };
}
