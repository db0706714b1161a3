import { Client } from 'acp-sdk';
import Fastify from 'fastify';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createClient } from '../../../src/client/client.ts';
import { type AgentAddress, createRuntime, rivulet, type ServerOptions } from '../../../src/index.ts';
import { protocolAddresses, protocolNames } from '../../../src/server/protocols.ts';
import { echo, never } from '../../support/agents.ts';
import { serve } from '../../support/serve.ts';

/** The addresses of the agent echo, by protocol. */
const byProtocol = (addresses: readonly AgentAddress[] = []): Record<string, string> =>
  Object.fromEntries(addresses.map(({ protocol, url }) => [protocol, url]));

async function addressesOf(options: Partial<ServerOptions> = {}, headers: Record<string, string> = {}) {
  const served = await serve([echo, never], options);
  const { addresses } = await (await served.get('/agents/echo', headers)).json();
  return { served, addresses: byProtocol(addresses) };
}

describe('the addresses of an agent', () => {
  it('are one for each protocol, with the name of the agent', async () => {
    const { served, addresses } = await addressesOf();
    expect(Object.keys(addresses)).toEqual(['acp', ...protocolNames]);
    expect(addresses).toMatchObject({
      acp: served.url,
      'ai-sdk': `${served.url}/ai/echo`,
      'ag-ui': `${served.url}/ag-ui/echo`,
      openai: `${served.url}/v1`,
      'durable-streams': `${served.url}/runs/{run_id}/stream`,
    });
    const { agents } = await (await served.get('/agents')).json();
    expect(agents.map((agent: { addresses: AgentAddress[] }) => byProtocol(agent.addresses)['ai-sdk'])).toEqual([
      `${served.url}/ai/echo`,
      `${served.url}/ai/never`,
    ]);
  });

  it('are those of the protocols that are served, each at its prefix', async () => {
    const { served, addresses } = await addressesOf({ protocols: { openai: '/models', 'ai-sdk': undefined } });
    expect(addresses).toEqual({ acp: served.url, openai: `${served.url}/models`, 'ai-sdk': `${served.url}/ai/echo` });
    expect(Object.keys((await addressesOf({ protocols: [] })).addresses)).toEqual(['acp']);
  });

  it('are answered at each protocol that has agents of its own', async () => {
    const { served, addresses } = await addressesOf();
    expect((await fetch(`${addresses.openai}/models/echo`)).status).toBe(200);
    for (const protocol of ['ai-sdk', 'ag-ui']) {
      const refused = await served.post(new URL(addresses[protocol] ?? '').pathname, {});
      // The body is wrong, the address is not.
      expect([protocol, refused.status]).toEqual([protocol, expect.toBeOneOf([400, 422])]);
    }
  });

  it('begin with the public URL of the server', async () => {
    const { addresses } = await addressesOf({ publicUrl: 'https://agents.example.com/acme/', protocols: ['ag-ui'] });
    expect(addresses).toEqual({
      acp: 'https://agents.example.com/acme',
      'ag-ui': 'https://agents.example.com/acme/ag-ui/echo',
    });
  });

  it('have the scheme and the host that a trusted proxy names, and no other client', async () => {
    const forwarded = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'agents.example.com' };
    const trusting = await addressesOf(
      { trustProxy: ['127.0.0.1'], allowedHosts: ['agents.example.com'], protocols: [] },
      forwarded,
    );
    expect(trusting.addresses).toEqual({ acp: 'https://agents.example.com' });
    const odd = await addressesOf(
      { trustProxy: ['127.0.0.1'], allowedHosts: ['agents.example.com'], protocols: [] },
      { ...forwarded, 'x-forwarded-proto': 'javascript' },
    );
    expect(odd.addresses).toEqual({ acp: 'http://agents.example.com' });
    const { served, addresses } = await addressesOf({ protocols: [] }, forwarded);
    expect(addresses).toEqual({ acp: served.url });
  });

  it('have the prefix of a plugin', async () => {
    const app = Fastify();
    onTestFinished(() => app.close());
    await app.register(rivulet, { prefix: '/acp', agents: [echo], docs: false, playground: false });
    const { addresses } = (await app.inject({ url: '/acp/agents/echo', headers: { host: 'localhost' } })).json();
    expect(byProtocol(addresses)).toMatchObject({
      acp: 'http://localhost/acp',
      'ai-sdk': 'http://localhost/acp/ai/echo',
      openai: 'http://localhost/acp/v1',
    });
  });

  it('are the server’s: a runtime without one has none', async () => {
    const runtime = await createRuntime({ agents: [echo] });
    onTestFinished(() => runtime.close());
    expect((await runtime.agent('echo')).addresses).toBeUndefined();
  });

  it('reach a client that knows of them, and do not disturb one of the protocol', async () => {
    const { served } = await addressesOf();
    expect((await createClient({ url: served.url }).agent('echo')).addresses).toHaveLength(protocolNames.length + 1);
    const published = new Client({ baseUrl: served.url });
    expect(await published.agent('echo')).toMatchObject({ name: 'echo', description: "The test's echo." });
    expect(await published.agents()).toHaveLength(2);
  });
});

describe('the addresses of the protocols', () => {
  it('name what stands for an agent and a run, and nothing else', () => {
    for (const { path, protocol } of protocolAddresses()) {
      expect([protocol, path.replace(/\{(agent|run_id)\}/, '')]).toEqual([
        protocol,
        expect.stringMatching(/^[/\w-]*$/),
      ]);
    }
  });
});
