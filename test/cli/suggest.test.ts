import { expect, it } from 'vitest';
import { suggestion } from '../../src/cli/suggest.ts';
import { closest } from '../../src/core/closest.ts';

const agents = ['approve', 'chat', 'demo', 'echo', 'summarize'];

it.each([
  ['ecko', 'echo'],
  ['dmeo', 'demo'],
  ['Chat', 'chat'],
  ['sumarise', 'summarize'],
  ['xyz', undefined],
  ['', undefined],
])('%s is probably %s', (typed, meant) => {
  expect(closest(typed, agents)).toBe(meant);
});

it('names what there is, where nothing is similar', () => {
  expect(suggestion('xyz', agents)).toBe(' There are: approve, chat, demo, echo, summarize.');
  expect(suggestion('ecko', agents)).toBe(' Did you mean echo?');
  expect(suggestion('ecko', [])).toBe('');
});
