/**
 * Rivulet behind real proxies: `tsx test/long/proxies.ts [NAME…]`, after a build
 *
 * Starts two nodes with a shared Redis, and behind each installed proxy (see `support/proxies/kinds.ts`) measures whether
 * events arrive at once, and what becomes of quiet streams, long runs, large bodies, clients that leave and nodes that die.
 * Prints a table, and each promise that is broken; exits with 1 if there is one, or where nothing was measured.
 *
 *   --late 70000        milliseconds of the sync run
 */
import { parseArgs } from 'node:util';
import { steadyPort } from '../support/ports.ts';
import { RivuletProcess } from '../support/process.ts';
import { makeProject } from '../support/project.ts';
import { proxyKinds } from '../support/proxies/kinds.ts';
import * as probes from '../support/proxies/probes.ts';
import { type ProxyKind, type StartedProxy, startProxy, versionOf } from '../support/proxies/proxy.ts';
import { type Ask, http1, http2 } from '../support/proxies/requests.ts';
import { redisPlace } from '../support/servers.ts';

const { values: options, positionals: names } = parseArgs({
  allowPositionals: true,
  options: { late: { type: 'string', default: '70000' } },
});
const print = (line: string): void => void process.stdout.write(`${line}\n`);

const place = await redisPlace();
if (place === undefined) throw new Error('there is no Redis to test with; install redis-server');
const project = makeProject(probes.agentFiles);
const ports = [await steadyPort(), await steadyPort()] as const;
const nodes: RivuletProcess[] = [];

async function startNode(index: 0 | 1): Promise<void> {
  const args = ['serve', '--port', String(ports[index]), '--store', place?.url ?? '', '--no-docs'];
  const limits = [`heartbeat=${probes.heartbeat}`, 'lease=1000'].flatMap((limit) => ['--limit', limit]);
  nodes[index] = new RivuletProcess([...args, ...limits], {}, project.folder);
  await nodes[index].url();
}

/** Milliseconds within which each promise has to hold. */
const most = { delay: 1_000, gap: 2 * probes.heartbeat + 500, cancel: 60_000 };
const broken: string[] = [];

/** A cell of the table. A promise that is broken is reported as well. */
async function cell(what: string, measure: () => Promise<{ text: string; holds: boolean }>): Promise<string> {
  try {
    const { text, holds } = await measure();
    if (!holds) broken.push(`${what}: ${text}`);
    return text;
  } catch (error) {
    broken.push(`${what}: ${error instanceof Error ? error.message : error}`);
    return 'failed';
  }
}

const status = (value: number, expected: number) => ({ text: String(value), holds: value === expected });
const ms = (value: number, limit: number) => ({ text: `${Math.round(value)} ms`, holds: value <= limit });

async function measure(kind: ProxyKind, proxy: StartedProxy): Promise<string[]> {
  const direct = `http://127.0.0.1:${ports[1]}`;
  const plain = http1(proxy, kind.plain);
  const requests: (readonly [string, Ask])[] = [['HTTP/1.1', plain]];
  if (kind.http2) requests.push(['HTTP/2', http2(proxy)]);
  const both = async (what: string, of: (ask: Ask) => Promise<{ text: string; holds: boolean }>): Promise<string> => {
    const cells: string[] = [];
    for (const [version, ask] of requests) cells.push(await cell(`${kind.name}, ${version}, ${what}`, () => of(ask)));
    return cells.join(', ');
  };
  const late = cell(`${kind.name}, sync run`, async () =>
    status(await probes.statusOfLateRun(plain, Number(options.late)), 200),
  );
  const cells = [
    await both('delay of tokens', async (ask) => {
      const { median, longest } = await probes.delays(ask);
      return { text: `${median} to ${longest} ms`, holds: longest <= most.delay };
    }),
    await both('longest gap', async (ask) => ms(await probes.longestGap(ask), most.gap)),
    await both('cancel', async (ask) => ms(await probes.timeToCancel(ask, direct, most.cancel), most.cancel)),
    await both('after the end', async (ask) => status(await probes.statusAfterEnd(ask), 204)),
    await both('9 MB', async (ask) => status(await probes.statusOfLargeBody(ask), 202)),
  ];
  return [...cells, await late];
}

/** How a stream ends whose node dies, and whether the official client gets the rest. */
async function killNode(kind: ProxyKind, proxy: StartedProxy): Promise<string[]> {
  const url = kind.plain ? `http://127.0.0.1:${proxy.port}` : undefined;
  const requests: Ask[] = [http1(proxy, kind.plain), ...(kind.http2 ? [http2(proxy)] : [])];
  const ends: string[] = [];
  let rest = 'not measured';
  for (const request of requests) {
    const what = `${kind.name}, a node dies`;
    const text = await cell(what, async () => {
      const seen = new Set<string>();
      let holds = true;
      // The readers may all be at the same node.
      for (const index of [0, 1] as const) {
        const kill = async (): Promise<void> => {
          await nodes[index]?.stop('SIGKILL');
          // A proxy with one node needs it again.
          await startNode(index);
        };
        const { ends: seenEnds, whole } = await probes.whenNodeDies(request, url, kill);
        for (const end of seenEnds) if (end !== undefined) seen.add(end);
        holds &&= whole !== false;
        if (whole !== undefined) rest = whole ? 'yes' : 'no';
      }
      return { text: [...seen].join(' or '), holds: holds && seen.size > 0 };
    });
    ends.push(text);
  }
  return [ends.join(', '), rest];
}

const kinds = proxyKinds.filter(({ name }) => names.length === 0 || names.includes(name));
const proxies: { readonly kind: ProxyKind; readonly version: string; readonly proxy: StartedProxy }[] = [];
try {
  await Promise.all([startNode(0), startNode(1)]);
  for (const kind of kinds) {
    const version = versionOf(kind);
    if (version === undefined) print(`not measured: ${kind.name} is not installed (${kind.package})`);
    else {
      const own = { port: await steadyPort(), tlsPort: await steadyPort(), nodes: ports };
      proxies.push({ kind, version, proxy: await startProxy(kind, own) });
    }
  }
  if (proxies.length === 0) throw new Error('no proxy is installed');
  const measured = await Promise.all(proxies.map(({ kind, proxy }) => measure(kind, proxy)));
  print(
    '| Proxy | Delay of a token | Longest gap | Cancel after a client left | After the end | 9 MB | Sync run | Stream of a dead node | Resumed |',
  );
  print('| --- | --- | --- | --- | --- | --- | --- | --- | --- |');
  for (const [index, { kind, version, proxy }] of proxies.entries()) {
    const cells = [`${kind.name} ${version}`, ...(measured[index] ?? []), ...(await killNode(kind, proxy))];
    print(`| ${cells.join(' | ')} |`);
  }
} finally {
  for (const { proxy } of proxies) await proxy.stop();
  for (const node of nodes) await node.stop('SIGKILL');
  await place.remove();
  project.remove();
}
for (const line of broken) print(`BROKEN: ${line}`);
if (broken.length > 0) process.exitCode = 1;
