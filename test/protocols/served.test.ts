import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { ServedProtocols } from '../../src/index.ts';
import { protocolNames } from '../../src/server/protocols.ts';
import { echo } from '../support/agents.ts';
import { serve } from '../support/serve.ts';

const models = async (path: string, protocols?: ServedProtocols): Promise<number> => {
  const served = await serve([echo], protocols === undefined ? {} : { protocols });
  return (await served.get(path)).status;
};

describe('the protocols beside the own API', () => {
  it('are all served by default', async () => {
    expect(await models('/v1/models')).toBe(200);
  });

  it('are those that the options name, each at its prefix or at another', async () => {
    expect(await models('/v1/models', ['ai-sdk'])).toBe(404);
    expect(await models('/openai/models', { openai: '/openai' })).toBe(200);
    expect(await models('/v1/models', [])).toBe(404);
  });

  it('refuse a name that they do not have, and list theirs', async () => {
    const typed: ServedProtocols = Object.fromEntries([['gopher', '/gopher']]);
    await expect(models('/', typed)).rejects.toThrow(`some of ${protocolNames.join(', ')}; got gopher`);
  });

  it('are served once where the options name them twice', async () => {
    expect(await models('/v1/models', ['openai', 'openai'])).toBe(200);
  });

  it.each(['openai', '/', '/openai/', '/open ai', '/:openai', '//openai'])('refuse the prefix "%s"', async (prefix) => {
    await expect(models('/', { openai: prefix })).rejects.toThrow(
      `protocols.openai: expected a prefix such as /openai, without a slash at its end; got ${prefix}`,
    );
  });

  it.each<[ServedProtocols, string]>([
    [{ 'ai-sdk': '/chat', openai: '/v1', a2a: '/chat' }, 'protocols.a2a: the prefix "/chat" is also that of ai-sdk'],
    [{ mcp: '/x', openai: '/x', a2a: '/x' }, 'protocols.a2a: the prefix "/x" is also that of mcp and openai'],
    [{ mcp: '' }, 'protocols.mcp: the prefix "" is also that of this server'],
  ])('refuse a prefix of others that have the same routes, and name them: %j', async (protocols, problem) => {
    const advice = ', and they have routes in common; give it another one';
    await expect(models('/', protocols)).rejects.toThrow(`${problem}${advice}`);
  });

  it('may have one prefix where their routes differ', async () => {
    expect(await models('/x/models', { openai: '/x', 'ai-sdk': '/x', 'durable-streams': '/x' })).toBe(200);
  });

  it('are loaded only where they are served', () => {
    const table = readFileSync(new URL('../../src/server/protocols.ts', import.meta.url), 'utf8');
    for (const name of protocolNames) {
      expect(table).toContain(`await import('../protocols/${name}/routes.ts')`);
      expect(table).not.toMatch(new RegExp(`from '\\.\\./protocols/${name}/`));
    }
  });
});
