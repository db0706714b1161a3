/**
 * Where Rivulet's time goes under a work: `npm run bench:profile -- "50 streams of"`, with
 * `--contestant rivulet-sqlite` for another one and `--times 20` for more of it.
 * Leaves out the start and the first two times, when code is compiled.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { temporaryFolder } from './cleanup.ts';
import { build, Contestant } from './contestant.ts';
import { entries } from './entries.ts';
import { usualTurn } from './work.ts';
import { works } from './works.ts';

/** The parts of Node's profile that are used here. */
interface Profile {
  readonly nodes: readonly { id: number; callFrame: { functionName: string; url: string; lineNumber: number } }[];
  readonly samples: readonly number[];
  /** Microseconds, by the clock of `process.hrtime`. */
  readonly startTime: number;
  /** Microseconds before each sample. */
  readonly timeDeltas: readonly number[];
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { contestant: { type: 'string', default: 'rivulet-memory' }, times: { type: 'string', default: '10' } },
});
const folder = temporaryFolder();
const entry = entries(folder).find(({ id }) => id === values.contestant);
const work = works.find(({ name }) => name.includes(positionals[0] ?? '50 streams of'));
if (entry === undefined || work === undefined || !('measure' in work)) {
  throw new Error(`nothing to profile; works: ${works.map(({ name }) => name).join('; ')}`);
}

build();
const flags = ['--cpu-prof', `--cpu-prof-dir=${folder}`, '--cpu-prof-interval=200', '--expose-gc'];
const contestant = await Contestant.start(entry, { flags });
for (let time = 0; time < 2; time += 1) await work.measure(contestant, usualTurn);
const warm = Number(process.hrtime.bigint() / 1000n);
for (let time = 0; time < Number(values.times); time += 1) await work.measure(contestant, usualTurn);
await contestant.exit();

const file = readdirSync(folder).find((name) => name.endsWith('.cpuprofile')) ?? '';
const profile: Profile = JSON.parse(readFileSync(join(folder, file), 'utf8'));
const self = new Map<number, number>();
let now = profile.startTime;
for (const [index, id] of profile.samples.entries()) {
  const delta = profile.timeDeltas[index] ?? 0;
  now += delta;
  if (now > warm) self.set(id, (self.get(id) ?? 0) + delta);
}

const root = new URL('..', import.meta.url).href;

/** `dist/engine/engine.js`, `fastify`, `node:stream`, or a name of V8's such as `(program)`. */
function fileOf(url: string, name: string): string {
  if (url === '') return name.startsWith('(') ? name : '(native)';
  const inside = url.lastIndexOf('node_modules/');
  if (inside >= 0) return /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url.slice(inside))?.[1] ?? url;
  return url.startsWith(root) ? url.slice(root.length) : url;
}

/** A folder for our own files, and the name of the package for others. */
function categoryOf(of: string): string {
  if (of.startsWith('node:')) return 'Node';
  if (of.startsWith('(')) return of;
  const [first = '', second = ''] = of.split('/');
  return first === 'dist' ? `dist/${second}` : first === 'bench' ? 'bench' : `package ${of}`;
}

const byFunction = new Map<string, number>();
const byFile = new Map<string, number>();
const byCategory = new Map<string, number>();
let busy = 0;
for (const { id, callFrame } of profile.nodes) {
  const { functionName, url, lineNumber } = callFrame;
  if (functionName === '(idle)') continue;
  const time = self.get(id) ?? 0;
  const of = fileOf(url, functionName);
  busy += time;
  for (const [map, key] of [
    [byFunction, `${functionName || '(anonymous)'}  ${of}${url === '' ? '' : `:${lineNumber + 1}`}`],
    [byFile, of],
    [byCategory, categoryOf(of)],
  ] as const) {
    map.set(key, (map.get(key) ?? 0) + time);
  }
}

function print(title: string, times: ReadonlyMap<string, number>, most: number): void {
  console.log(`\n${title}`);
  for (const [name, time] of [...times].sort(([, a], [, b]) => b - a).slice(0, most)) {
    console.log(
      `${((100 * time) / busy).toFixed(1).padStart(6)}%  ${(time / 1000).toFixed(0).padStart(6)} ms  ${name}`,
    );
  }
}

console.log(`${entry.name}, ${work.name}, ${values.times} times: ${(busy / 1000).toFixed(0)} ms of CPU time`);
print('By folder', byCategory, 20);
print('By file', byFile, 25);
print('By function, self time', byFunction, 40);
process.exit();
