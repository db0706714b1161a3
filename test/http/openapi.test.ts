import Fastify from 'fastify';
import { describe, expect, it, onTestFinished } from 'vitest';
import { rivulet } from '../../src/index.ts';
import { echo } from '../support/agents.ts';
import { type Served, serve } from '../support/serve.ts';

interface Operation {
  readonly operationId?: string;
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: string[];
  readonly responses: Record<string, { description: string; content: Record<string, { schema: object }> } | undefined>;
}

describe('the OpenAPI document', () => {
  it('is 3.1, names every schema once, and has no broken reference', async () => {
    const served = await serve([echo]);
    const document = await (await served.get('/openapi.json')).json();
    expect(document.openapi).toBe('3.1.0');
    const text = JSON.stringify(document);
    const known = Object.keys(document.components.schemas);
    const referred = [...text.matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref]) => ref);
    expect(referred.length).toBeGreaterThan(10);
    for (const ref of referred) expect(known).toContain(ref?.replace('#/components/schemas/', ''));
    const named = ['AgentManifest', 'Run', 'Message', 'MessagePart', 'Session', 'Error', 'Event', 'RunCreateRequest'];
    expect(known).toEqual(expect.arrayContaining(named));
    expect(text).not.toContain('"$id"');
  });

  it('has every call of the contract, and a name of each for client generators', async () => {
    const served = await serve([echo]);
    const { paths } = await (await served.get('/openapi.json')).json();
    const calls = Object.entries<Record<string, Operation>>(paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, { operationId }]) => `${method} ${path} ${operationId}`),
    );
    expect(calls.sort()).toEqual([
      'delete /principals/me/data erasePrincipal',
      'delete /runs/{run_id} deleteRun',
      'delete /sessions/{session_id} deleteSession',
      'get /agents listAgents',
      'get /agents/{name} getAgent',
      'get /health getHealth',
      'get /ping ping',
      'get /ready getReadiness',
      'get /resources/{resource_id} getResource',
      'get /runs listRuns',
      'get /runs/{run_id} getRun',
      'get /runs/{run_id}/diagnostics listDiagnostics',
      'get /runs/{run_id}/events listRunEvents',
      'get /session/{session_id} getSessionAlias',
      'get /sessions/{session_id} getSession',
      'post /runs createRun',
      'post /runs/{run_id} resumeRun',
      'post /runs/{run_id}/again runAgain',
      'post /runs/{run_id}/cancel cancelRun',
      'post /runs/{run_id}/retry retryRun',
      'post /runs/{run_id}/stream-ticket createStreamTicket',
    ]);
  });

  const operations = async (served: Served): Promise<Operation[]> => {
    const { paths } = await (await served.get('/openapi.json')).json();
    return Object.values<Record<string, Operation>>(paths).flatMap((item) => Object.values(item));
  };

  it('says that any call can answer an Error', async () => {
    for (const { responses } of await operations(await serve([echo]))) {
      expect(responses.default?.content['application/json']?.schema).toEqual({ $ref: '#/components/schemas/Error' });
    }
  });

  it('describes an Error as the protocol does, and texts with a format', async () => {
    const served = await serve([echo]);
    const document = await (await served.get('/openapi.json')).json();
    const { Error: body, ErrorCode, Run, MessagePart, Person } = document.components.schemas;
    expect(ErrorCode).toMatchObject({ type: 'string', enum: ['server_error', 'invalid_input', 'not_found'] });
    expect(body.properties.code).toEqual({ $ref: '#/components/schemas/ErrorCode' });
    expect(body.properties.data.type).toBe('object');
    expect(Run.properties.run_id.format).toBe('uuid');
    expect(Run.properties.created_at.format).toBe('date-time');
    expect(MessagePart.properties.content_url.format).toBe('uri');
    expect(Person.properties.email.format).toBe('email');
    expect(JSON.stringify(document)).not.toContain('rivulet:');
  });

  it('has a part for requests, whose defaults are optional, and one for answers, which has a content type', async () => {
    const served = await serve([echo]);
    const { schemas } = (await (await served.get('/openapi.json')).json()).components;
    const { MessagePart, MessagePartInput, MessageInput, Message, RunResumeRequest } = schemas;
    expect(MessagePartInput.properties.content_encoding).not.toHaveProperty('default');
    expect(MessagePartInput.required).toBeUndefined();
    expect(MessagePart.required).toEqual(['content_type']);
    expect(MessageInput.properties.parts.items.$ref).toBe('#/components/schemas/MessagePartInput');
    expect(Message.properties.parts.items.$ref).toBe('#/components/schemas/MessagePart');
    expect(RunResumeRequest.required).toEqual(['await_resume']);
  });

  it('describes each call, each group of calls and each answer', async () => {
    const served = await serve([echo]);
    const { tags } = await (await served.get('/openapi.json')).json();
    expect(tags.map(({ name }: { name: string }) => name)).toEqual([
      'agents',
      'runs',
      'sessions',
      'webhooks',
      'service',
    ]);
    for (const { operationId, summary, description, tags: groups, responses } of await operations(served)) {
      expect([operationId, summary?.length, description?.length, groups?.length]).toEqual([
        operationId,
        expect.toSatisfy((length) => length > 3 && length <= 60),
        expect.toSatisfy((length) => length > 40),
        1,
      ]);
      expect(Object.values(responses).map((response) => response?.description)).not.toContain('Default Response');
    }
  });

  it('describes the answer of each mode of a run', async () => {
    const served = await serve([echo]);
    const { paths } = await (await served.get('/openapi.json')).json();
    for (const path of ['/runs', '/runs/{run_id}']) {
      const { 200: settled, 202: accepted } = paths[path].post.responses;
      expect(settled.content['application/json'].schema).toEqual({ $ref: '#/components/schemas/Run' });
      expect(settled.content['text/event-stream'].schema.type).toBe('string');
      expect(accepted.content['application/json'].schema).toEqual({ $ref: '#/components/schemas/Run' });
      expect(Object.keys(settled.headers)).toEqual(expect.arrayContaining(['Run-ID', 'Rivulet-Warning']));
    }
  });

  it.each([
    ['the public URL', { publicUrl: 'https://agents.example.com/base' }, 'https://agents.example.com/base'],
    ['this server', {}, undefined],
  ])('has the URL of the calls: %s', async (_, options, url) => {
    const served = await serve([echo], options);
    const { servers, paths } = await (await served.get('/openapi.json')).json();
    expect(servers).toEqual([{ url: url ?? served.url, description: 'this server' }]);
    expect(paths['/runs']).toBeDefined();
  });

  it('has the URL of the calls: with the prefix of the plugin', async () => {
    const app = Fastify();
    onTestFinished(() => app.close());
    await app.register(rivulet, { prefix: '/acp', agents: [echo] });
    await app.ready();
    const { servers, paths } = (await app.inject('/acp/openapi.json')).json();
    expect(servers[0].url).toBe('http://localhost:80/acp');
    expect(paths['/runs']).toBeDefined();
  });
});
