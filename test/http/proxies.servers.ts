import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { steadyPort } from '../support/ports.ts';
import { RivuletProcess } from '../support/process.ts';
import { makeProject } from '../support/project.ts';
import { proxyKinds } from '../support/proxies/kinds.ts';
import * as probes from '../support/proxies/probes.ts';
import { type StartedProxy, startProxy, versionOf } from '../support/proxies/proxy.ts';
import { type Ask, http1, http2 } from '../support/proxies/requests.ts';
import { redisPlace } from '../support/servers.ts';

// `npm run test:proxies` measures all of them; CI has these.
const kinds = proxyKinds.filter(({ name }) => ['nginx', 'HAProxy'].includes(name));
const missing = kinds.filter((kind) => versionOf(kind) === undefined).map((kind) => kind.package);
if (missing.length > 0 && process.env.CI === 'true') throw new Error(`install ${missing}`);
if (missing.length > 0) console.warn(`\nSKIPPED: tests behind ${missing}, which are not installed\n`);
const place = await redisPlace();
afterAll(() => place?.remove());

describe.skipIf(place === undefined || missing.length > 0).each(kinds)('two nodes behind $name', (kind) => {
  const project = makeProject(probes.agentFiles);
  const nodes: RivuletProcess[] = [];
  let ports: [number, number] = [0, 0];
  let proxy: StartedProxy;
  const startNode = async (index: 0 | 1): Promise<void> => {
    const limits = [`heartbeat=${probes.heartbeat}`, 'lease=5000'].flatMap((limit) => ['--limit', limit]);
    const args = ['serve', '--port', String(ports[index]), '--store', place?.url ?? '', ...limits];
    nodes[index] = new RivuletProcess(args, {}, project.folder);
    await nodes[index].url();
  };

  beforeAll(async () => {
    ports = [await steadyPort(), await steadyPort()];
    await Promise.all([startNode(0), startNode(1)]);
    proxy = await startProxy(kind, { port: await steadyPort(), tlsPort: await steadyPort(), nodes: ports });
  });
  afterAll(async () => {
    await proxy?.stop();
    for (const node of nodes) await node.stop('SIGKILL');
    project.remove();
  });

  const each = async (check: (ask: Ask) => Promise<void>): Promise<void> => {
    await check(http1(proxy, kind.plain));
    if (kind.http2) await check(http2(proxy));
  };

  it('stream each event before the next one', () =>
    each(async (ask) => {
      // Tokens that are held together come late each time; other load may delay those of one run.
      await eventually(async () => expect((await probes.delays(ask)).median).toBeLessThan(1_000));
    }));

  it('answer 204 after the end, and take 9 MB', () =>
    each(async (ask) => {
      expect([await probes.statusAfterEnd(ask), await probes.statusOfLargeBody(ask)]).toEqual([204, 202]);
    }));

  it('cancel a silent run whose client has left', () =>
    each(async (ask) => {
      const most = 60_000;
      expect(await probes.timeToCancel(ask, `http://127.0.0.1:${ports[1]}`, most)).toBeLessThan(most);
    }));

  it('give a client each token once when a node is killed', async () => {
    const kill = async (): Promise<void> => void (await nodes[0]?.stop('SIGKILL'));
    const { whole } = await probes.whenNodeDies(http1(proxy, true), `http://127.0.0.1:${proxy.port}`, kill);
    expect(whole).toBe(true);
  });
});
