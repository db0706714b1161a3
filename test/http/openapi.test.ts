import Fastify from 'fastify';
import { describe, expect, it, onTestFinished } from 'vitest';
import { rivulet } from '../../src/index.ts';
import { echo } from '../support/agents.ts';
import { type Served, serve } from '../support/serve.ts';

interface Operation {
  readonly operationId?: string;
  readonly responses: Record<string, { content: Record<string, { schema: object }> } | undefined>;
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
    expect(known).toEqual(
      expect.arrayContaining([
        'AgentManifest',
        'Run',
        'Message',
        'MessagePart',
        'Session',
        'Error',
        'Event',
        'RunCreateRequest',
      ]),
    );
    expect(text).not.toContain('"$id"');
  });

  it('has every path of the contract, with its methods', async () => {
    const served = await serve([echo]);
    const { paths } = await (await served.get('/openapi.json')).json();
    const calls = Object.entries<object>(paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method} ${path}`),
    );
    expect(calls.sort()).toEqual([
      'delete /runs/{run_id}',
      'delete /sessions/{session_id}',
      'get /agents',
      'get /agents/{name}',
      'get /health',
      'get /ping',
      'get /ready',
      'get /resources/{resource_id}',
      'get /runs',
      'get /runs/{run_id}',
      'get /runs/{run_id}/events',
      'get /session/{session_id}',
      'get /sessions/{session_id}',
      'post /runs',
      'post /runs/{run_id}',
      'post /runs/{run_id}/cancel',
    ]);
  });

  const operations = async (served: Served): Promise<Operation[]> => {
    const { paths } = await (await served.get('/openapi.json')).json();
    return Object.values<Record<string, Operation>>(paths).flatMap((item) => Object.values(item));
  };

  it('names each operation for client generators', async () => {
    const ids = (await operations(await serve([echo]))).map(({ operationId }) => operationId);
    expect(ids.sort()).toEqual([
      'cancelRun',
      'createRun',
      'deleteRun',
      'deleteSession',
      'getAgent',
      'getHealth',
      'getReadiness',
      'getResource',
      'getRun',
      'getSession',
      'getSessionAlias',
      'listAgents',
      'listRunEvents',
      'listRuns',
      'ping',
      'resumeRun',
    ]);
  });

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

  it('has no field in a request that generated types require without need', async () => {
    const served = await serve([echo]);
    const { MessagePart, RunResumeRequest } = (await (await served.get('/openapi.json')).json()).components.schemas;
    expect(MessagePart.properties.content_encoding).not.toHaveProperty('default');
    expect(MessagePart.required).toBeUndefined();
    expect(RunResumeRequest.required).toEqual(['await_resume']);
  });

  it('has an example that runs unchanged', async () => {
    const served = await serve([echo]);
    const { paths } = await (await served.get('/openapi.json')).json();
    const body = paths['/runs'].post.requestBody.content['application/json'];
    const response = await served.post('/runs', body.example);
    expect([response.status, (await response.json()).status]).toEqual([200, 'completed']);
  });

  it.each([
    ['the public URL', { publicUrl: 'https://agents.example.com/base' }, 'https://agents.example.com/base'],
    ['this server', {}, '/'],
  ])('has the URL of the calls: %s', async (_, options, url) => {
    const served = await serve([echo], options);
    const { servers, paths } = await (await served.get('/openapi.json')).json();
    expect(servers).toEqual([{ url }]);
    expect(paths['/runs']).toBeDefined();
  });

  it('has the URL of the calls: with the prefix of the plugin', async () => {
    const app = Fastify();
    onTestFinished(() => app.close());
    await app.register(rivulet, { prefix: '/acp', agents: [echo] });
    await app.ready();
    const { servers, paths } = (await app.inject('/acp/openapi.json')).json();
    expect(servers).toEqual([{ url: '/acp' }]);
    expect(paths['/runs']).toBeDefined();
  });

  it('can be browsed', async () => {
    const served = await serve([echo]);
    const page = await served.get('/docs/');
    expect(page.status).toBe(200);
    expect(await page.text()).toContain('Swagger UI');
  });
});
