import { describe, expect, it } from 'vitest';
import { echo } from '../support/agents.ts';
import { serve } from '../support/serve.ts';

describe('the OpenAPI document', () => {
  it('is 3.1, names every schema once, and refers to nothing that is not there', async () => {
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

  it('has every path of the contract, with the methods that it takes', async () => {
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

  it('can be browsed', async () => {
    const served = await serve([echo]);
    const page = await served.get('/docs/');
    expect(page.status).toBe(200);
    expect(await page.text()).toContain('Swagger UI');
  });
});
