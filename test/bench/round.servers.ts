import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { build, Contestant } from '../../bench/contestant.ts';
import { entries } from '../../bench/entries.ts';
import { judge } from '../../bench/goals.ts';
import { write } from '../../bench/report.ts';
import { compare } from '../../bench/rounds.ts';
import { type MeasuredInRounds, usualTurn } from '../../bench/work.ts';
import { works } from '../../bench/works.ts';
import { newFolder } from '../support/folder.ts';

const folder = newFolder(afterAll);

const workOf = (name: string) => works.find((one): one is MeasuredInRounds => one.name === name);
const work = workOf('1 stream of 1,000 tokens');
const figures = (perSecond: number) => [{ 'events/s': perSecond }];

describe('the bench', () => {
  it('measures a round, and excludes a contestant that does not start', async () => {
    const [bare, memory] = ['bare', 'rivulet-memory'].map((id) => entries(folder).find((one) => one.id === id));
    if (work === undefined || bare === undefined || memory === undefined) throw new Error('the entries are missing');
    const missing = { ...bare, id: 'missing', file: 'missing' };
    build();
    const options = { rounds: 1, pinned: false, warmUp: 0, turn: usualTurn, progress: () => {} };
    const { rows, excluded } = await compare(work, [bare, memory, missing], options);
    expect([...rows.keys()]).toEqual(['bare', 'rivulet-memory']);
    expect(rows.get('rivulet-memory')?.[0]?.['events/s']).toBeGreaterThan(0);
    expect(excluded.get('missing')).toMatch(/Cannot find module/);
  });

  it('measures fewer runs in a turn of less than a second', async () => {
    const [entry, runs] = [
      entries(folder).find(({ id }) => id === 'rivulet-memory'),
      workOf('Sync runs, 1 connection'),
    ];
    if (entry === undefined || runs === undefined) throw new Error('the entry or the workload is missing');
    build();
    const contestant = await Contestant.start(entry, { pinned: false });
    onTestFinished(() => contestant.stop());
    expect((await runs.measure(contestant, 10))['runs/s']).toBeGreaterThan(0);
    const made = await (await fetch(`http://127.0.0.1:${contestant.port}/runs?limit=100`)).json();
    // Four for each millisecond, and a tenth of that before, which does not count.
    expect(made.runs).toHaveLength(44);
  });

  it.skipIf(spawnSync('taskset', ['-c', '0', 'true']).status !== 0)('takes the turn of its command', () => {
    const root = resolve(import.meta.dirname, '../..');
    const options = ['--only', 'streams', '--work', '1 stream of 1,000', '--contestants', 'rivulet-memory'];
    const few = ['--pairs', '1', '--rounds', '1', '--warm-up', '1'];
    const args = ['--import', 'tsx', 'bench/main.ts', '--before', root, ...options, ...few, '--turn', '50'];
    const { status, stdout } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' });
    expect(stdout).toMatch(/\| Rivulet, memory \| events\/s \| \d+ \| \d+ \|[\s\S]* and turns of 50 ms\./);
    expect(status).toBe(0);
  });

  it('reports by how much a goal is missed', () => {
    if (work === undefined) throw new Error('the workload is missing');
    const goal = { work: work.name, of: 'a', figure: 'events/s', against: 'b', bound: 'at least', limit: 1 } as const;
    const result = {
      work,
      excluded: new Map(),
      rows: new Map([
        ['a', figures(50)],
        ['b', figures(200)],
      ]),
    };
    expect(judge(goal, result, (id) => id)).toBe('events/s ≥ 1× b: **missed by 0.75**, 0.25');
    expect(judge({ ...goal, limit: 0.2 }, result, (id) => id)).toBe('events/s ≥ 0.2× b: met, 0.25');
    expect(judge({ ...goal, of: 'c' }, result, (id) => id)).toBe('events/s ≥ 1× b: not measured');
  });

  it("replaces a work's section in the results, and nothing else", () => {
    const path = join(folder, 'RESULTS.md');
    const order = ['One', 'Two'];
    write(path, new Map([['Two', '### Two\n\nold']]), order, 'Here.');
    writeFileSync(path, readFileSync(path, 'utf8').replace('## Findings', '## Findings\n\nBy hand.'));
    write(path, new Map([['One', '### One\n\nfirst']]), order, 'There.');
    write(path, new Map([['Two', '### Two\n\nnew']]), order, 'There.');
    const text = readFileSync(path, 'utf8');
    expect(text).toMatch(/By hand\.[\s\S]*There\.\n\n### One\n\nfirst\n\n### Two\n\nnew\n\n<!-- end/);
    expect(text).not.toMatch(/old|Here\./);
  });
});
