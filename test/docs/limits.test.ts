import { expect, it } from 'vitest';
import { rows } from '../../src/cli/settings/settings.ts';
import { readPage } from './blocks.ts';

const numbers: Readonly<Record<string, number>> = { no: 0, one: 1, seven: 7, ten: 10 };
const day = 24 * 60 * 60 * 1_000;
const units: Readonly<Record<string, number>> = {
  s: 1_000,
  minutes: day / 24 / 60,
  hour: day / 24,
  hours: day / 24,
  days: day,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
};

/** The number that a text such as `256 Mi`, `seven days` or `500; in code 0` begins with. */
function defaultIn(text: string): number {
  const [, number = '', unit = ''] = /^([\d,]+|\w+)(?: (\w+))?/.exec(text) ?? [];
  return (numbers[number] ?? Number(number.replaceAll(',', ''))) * (units[unit] ?? 1);
}

it('docs/durability.md and docs/security.md have one row for each limit, with its default', () => {
  const limits = rows().flatMap(({ path: [group, name = ''], schema }) =>
    // That of `commitInterval` depends on the store.
    group === 'limits' ? [`${name} ${schema.default ?? 15}`] : [],
  );
  const text = `${readPage('docs/durability.md')}\n${readPage('docs/security.md')}`;
  const names = new Set(limits.map((limit) => limit.split(' ')[0]));
  const documented = [...text.matchAll(/^\| `(\w+)` +\| ([^|]+) \|/gm)]
    .filter(([, name]) => names.has(name ?? ''))
    .map(([, name, value = '']) => `${name} ${defaultIn(value)}`);
  expect(limits.length).toBeGreaterThan(30);
  expect(documented.toSorted()).toEqual(limits.toSorted());
});
