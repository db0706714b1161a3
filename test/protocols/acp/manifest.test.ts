import { Value } from '@sinclair/typebox/value';
import { concat, NEVER, of, throwError } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { AgentManifest, type AgentManifestInput, createServer, defineAgent } from '../../../src/index.ts';
import { agent, echo } from '../../support/agents.ts';
import { ask, finished, serveApi } from '../../support/serve.ts';

/** A manifest with every field. */
const full: AgentManifestInput = {
  name: 'full',
  description: 'Has every field.',
  input_content_types: ['text/plain', 'image/*'],
  output_content_types: ['text/markdown'],
  metadata: {
    annotations: { beeai_ui: { ui_type: 'chat' }, anything: [1, null] },
    documentation: '# Full',
    license: 'Apache-2.0',
    programming_language: 'TypeScript',
    natural_languages: ['en', 'de'],
    framework: 'Rivulet',
    capabilities: [{ name: 'a', description: 'b' }],
    domains: ['finance'],
    tags: ['x', 'y'],
    created_at: '2025-01-01T00:00:00Z',
    updated_at: '2025-01-02T00:00:00Z',
    author: { name: 'A', email: 'a@example.com', url: 'https://example.com' },
    contributors: [{ name: 'B' }, { name: 'C', email: 'c@example.com' }],
    links: [
      { type: 'source-code', url: 'https://example.com/a' },
      { type: 'container-image', url: 'https://example.com/b' },
      { type: 'homepage', url: 'https://example.com/c' },
      { type: 'documentation', url: 'https://example.com/d' },
    ],
    dependencies: [
      { type: 'agent', name: 'echo' },
      { type: 'tool', name: 'search' },
      { type: 'model', name: 'llama' },
    ],
    recommended_models: ['llama3.2'],
    of_my_own: { kept: true },
  },
} as AgentManifestInput;

describe('a manifest', () => {
  it('is sent with every field as it was written', async () => {
    const served = await serveApi([defineAgent(full, () => 'ok')]);
    const { addresses, ...manifest } = await (await served.get('/agents/full')).json();
    expect(manifest).toEqual(full);
    expect(Value.Check(AgentManifest, { ...manifest, addresses })).toBe(true);
    expect((await (await served.get('/agents')).json()).agents).toEqual([{ ...full, addresses }]);
  });

  it('has its times in UTC', async () => {
    const metadata = { created_at: '2026-01-01T01:00:00.5+02:00', updated_at: '2026-01-01T00:00:00Z' };
    const served = await serveApi([defineAgent({ name: 'a', description: 'b', metadata }, () => 'ok')]);
    expect((await (await served.get('/agents/a')).json()).metadata).toEqual({
      created_at: '2025-12-31T23:00:00.5Z',
      updated_at: '2026-01-01T00:00:00Z',
    });
  });

  it('accepts all content types where none are listed', async () => {
    const served = await serveApi([defineAgent({ name: 'a', description: 'b' }, () => 'ok')]);
    expect(await (await served.get('/agents/a')).json()).toMatchObject({
      name: 'a',
      description: 'b',
      input_content_types: ['*/*'],
      output_content_types: ['*/*'],
    });
  });

  it('is listed by name, ten at a time by default', async () => {
    const names = Array.from({ length: 25 }, (_, n) => `a${String(n).padStart(2, '0')}`);
    const served = await serveApi([...names].reverse().map((name) => agent(name, () => 'ok')));
    const listed = async (query: string): Promise<string[]> =>
      (await (await served.get(`/agents${query}`)).json()).agents.map(({ name }: { name: string }) => name);
    expect(await listed('')).toEqual(names.slice(0, 10));
    expect(await listed('?limit=1000')).toEqual(names);
    expect(await listed('?limit=5&offset=22')).toEqual(names.slice(22));
    expect(await listed('?offset=100')).toEqual([]);
  });

  it.each([
    ['no name', { name: undefined }, 'manifest.name: is required'],
    ['a bad name', { name: 'Not Good' }, 'manifest.name: expected a DNS label'],
    ['too long a name', { name: 'a'.repeat(64) }, 'manifest.name: expected string length less or equal to 63'],
    ['a name that ends in a hyphen', { name: 'a-' }, 'manifest.name: expected a DNS label'],
    ['no description', { description: undefined }, 'manifest.description: is required'],
    ['no content type at all', { input_content_types: [] }, 'manifest.input_content_types'],
    [
      'a link of no known type',
      { metadata: { links: [{ type: 'blog', url: 'x' }] } },
      'manifest.metadata.links[0].type: expected one of',
    ],
    [
      'a URL without a scheme',
      { metadata: { author: { name: 'A', url: 'example.com' } } },
      'manifest.metadata.author.url: expected an absolute URI, such as https://example.com/a, got "example.com".',
    ],
    [
      'an invalid e-mail address',
      { metadata: { contributors: [{ name: 'A', email: 'ada' }] } },
      'manifest.metadata.contributors[0].email: expected an e-mail address',
    ],
    [
      'an invalid time',
      { metadata: { created_at: '2026-02-30T00:00:00Z' } },
      'manifest.metadata.created_at: expected an ISO 8601 date and time',
    ],
    [
      'what JSON cannot express',
      { metadata: { annotations: { size: 5n } } },
      'manifest.metadata.annotations.size: is a bigint, which JSON cannot express.',
    ],
  ])('is refused with the field’s name: %s', (_, wrong, says) => {
    const manifest = { name: 'a', description: 'a', ...wrong } as AgentManifestInput;
    expect(() => defineAgent(manifest, () => 'ok')).toThrow(says);
  });

  it('has a name that no other agent of the server has', async () => {
    const twice = [
      { agent: echo, source: 'agents/a.ts' },
      { agent: echo, source: 'agents/b.ts' },
    ];
    await expect(createServer({ agents: twice })).rejects.toThrow(
      'agents/b.ts: agent name "echo" is already used by agents/a.ts',
    );
  });

  it('has the figures of executed runs, without cancelled ones; a run has those that its agent reports', async () => {
    const mixed = agent('mixed', (input, context) => {
      const request = input[0]?.parts[0]?.content;
      if (request === 'usage') context.usage({ tokens: 10 });
      if (request === 'usage') context.usage({ tokens: 40 });
      if (request === 'fail') return throwError(() => new Error('no'));
      return request === 'hang' ? concat(of('a', 'b'), NEVER) : of('a', 'b', 'c', 'd');
    });
    const served = await serveApi([mixed]);
    const status = async () => (await (await served.get('/agents/mixed')).json()).status;
    expect(await status()).toBeUndefined();
    const parts = await (await served.post('/runs', ask('mixed', 'parts'))).json();
    expect(parts.usage).toBeUndefined();
    expect(await status()).toMatchObject({ avg_run_tokens: 4, success_rate: 100 });
    // A run has what its agent reported, for its readers.
    const used = await (await served.post('/runs', ask('mixed', 'usage'))).json();
    expect(used.usage).toEqual({ tokens: 50 });
    expect(await status()).toMatchObject({ avg_run_tokens: 27, success_rate: 100 });
    const { run_id } = await (await served.post('/runs', ask('mixed', 'hang', { mode: 'async' }))).json();
    await served.post(`/runs/${run_id}/cancel`);
    await finished(served, run_id);
    expect(await status()).toMatchObject({ avg_run_tokens: 27, success_rate: 100 });
    await served.post('/runs', ask('mixed', 'fail'));
    const { success_rate, avg_run_time_seconds } = await status();
    expect(success_rate).toBe(66.667);
    expect(avg_run_time_seconds).toBeGreaterThanOrEqual(0);
  });
});
