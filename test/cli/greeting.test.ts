import { describe, expect, it } from 'vitest';
import { isLoopback } from '../../src/cli/addresses.ts';
import { greeting } from '../../src/cli/serving/greeting.ts';
import { reachableUrls } from '../../src/cli/serving/listen.ts';
import { agent } from '../support/agents.ts';

const options = { store: 'memory:', docs: false, playground: false };
const named = (...names: string[]) => names.map((name) => agent(name, () => 'x'));

describe('the text at start-up', () => {
  it('begins with demo, which is also the agent to try', () => {
    const text = greeting(named('approve', 'demo', 'echo'), ['http://127.0.0.1:8000'], options);
    expect(text).toMatch(/\n {2}demo +The test's demo\.\n {2}approve .*\n {2}echo /);
    expect(text).toContain('curl -N http://127.0.0.1:8000/runs');
    expect(text).toContain('"agent_name":"demo"');
  });

  it('says how to write an agent where there is none', () => {
    const protocols = ['AI SDK: /ai/{agent}', 'OpenAI: /v1'];
    const text = greeting([], ['http://127.0.0.1:8000'], { ...options, protocols, watch: true });
    expect(text).toContain('Other clients: AI SDK: /ai/{agent}, OpenAI: /v1');
    expect(text).toContain('"npx rivulet new NAME" writes a first one.');
    expect(text).toContain('curl http://127.0.0.1:8000/agents');
  });

  it('has all URLs of an address that stands for all', () => {
    const urls = reachableUrls('0.0.0.0', 'http://127.0.0.1:8000');
    expect(urls[0]).toBe('http://127.0.0.1:8000');
    expect(new Set(urls).size).toBe(urls.length);
    const text = greeting(named('a'), ['http://127.0.0.1:8000', 'http://10.0.0.5:8000'], options);
    expect(text).toContain('listening at http://127.0.0.1:8000 with one agent');
    expect(text).toContain('and http://10.0.0.5:8000');
    expect(reachableUrls('127.0.0.1', 'http://127.0.0.1:8000')).toEqual(['http://127.0.0.1:8000']);
  });

  it.each([
    ['127.0.0.1', true],
    ['localhost', true],
    ['::1', true],
    ['0.0.0.0', false],
    ['::', false],
    ['192.168.1.5', false],
  ])('knows whether only this computer reaches %s', (host, is) => {
    expect(isLoopback(host)).toBe(is);
  });
});
