import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '..');
const page = readFileSync(resolve(root, 'CONTRIBUTING.md'), 'utf8');
const journeys = page.slice(page.indexOf('## Journeys'), page.indexOf('## Words'));
const adding = page.slice(page.indexOf('## Adding'), page.indexOf('## Journeys'));

/** Each file of a text, and the names that stand behind it. */
const stationsOf = (text: string) =>
  [...text.matchAll(/`([\w./-]+\.tsx?)`\s+\(((?:`\w+`(?:,\s+)?)+)\)/g)].map(([, file = '', names = '']) => ({
    file,
    names: [...names.matchAll(/`(\w+)`/g)].map(([, name = '']) => name),
  }));
const stations = [...stationsOf(journeys), ...stationsOf(adding)];

describe('the map in CONTRIBUTING', () => {
  it('names folders that there are', () => {
    const folders = [...page.matchAll(/^\| `(src\/[\w/]+)`/gm)].map(([, folder = '']) => folder);
    expect(folders.length).toBeGreaterThan(10);
    expect(folders.filter((folder) => !existsSync(resolve(root, folder)))).toEqual([]);
  });

  it('leads through files that there are, which have the names behind them', () => {
    expect(stations.length).toBeGreaterThan(30);
    const wrong = stations.flatMap(({ file, names }) => {
      const path = resolve(root, 'src', file);
      if (!existsSync(path)) return [`there is no ${file}`];
      const text = readFileSync(path, 'utf8');
      return names.filter((name) => !new RegExp(`\\b${name}\\b`).test(text)).map((name) => `${file} has no ${name}`);
    });
    expect(wrong).toEqual([]);
  });

  it('takes a token back to a lower layer at most twice', () => {
    const [, token = ''] = journeys.split('\n- ');
    const layers = stationsOf(token).map(({ file }) => ['core', 'engine', 'http'].indexOf(file.split('/')[0] ?? ''));
    expect([layers.at(0), layers.at(-1), layers.includes(-1)]).toEqual([1, 2, false]);
    expect(layers.filter((layer, at) => layer < (layers[at - 1] ?? 0)).length).toBeLessThanOrEqual(2);
  });

  it('leaves out no room of the engine', () => {
    for (const room of ['log', 'execution', 'runs', 'cluster']) {
      expect(stations.some(({ file }) => file.startsWith(`engine/${room}/`))).toBe(true);
    }
  });
});
