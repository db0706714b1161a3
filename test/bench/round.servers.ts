import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { build } from '../../bench/contestant.ts';
import { entries } from '../../bench/entries.ts';
import { judge } from '../../bench/goals.ts';
import { write } from '../../bench/report.ts';
import { compare } from '../../bench/rounds.ts';
import { type MeasuredInRounds, usualTurn } from '../../bench/work.ts';
import { works } from '../../bench/works.ts';

const folder = mkdtempSync(join(tmpdir(), 'rivulet-bench-test-'));
afterAll(() => rmSync(folder, { recursive: true }));

const work = works.find((one): one is MeasuredInRounds => one.name === '1 stream of 1,000 tokens');
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
