import type { Random } from './random.ts';

/** What a run is asked to do, as the JSON text of its input. `key` is one of its own. */
export interface Order {
  readonly key: string;
  readonly kind: Kind;
  /** How many tokens, and the milliseconds between them. */
  readonly n: number;
  readonly ms: number;
}

const head = `
import { defineAgent } from 'rivulet';
import { concat, count, defer, from, ignoreElements, interval, map, merge, of, take, timer } from 'rxjs';

const orderOf = (input) => JSON.parse(input[0].parts[0].content);
const textOf = ({ parts }) => parts.map(({ content }) => content).join('');
/** The tokens of a track, one every few milliseconds. */
const tokens = (track, n, ms, from = 0) => interval(ms).pipe(take(n - from), map((i) => track + (i + from) + ' '));
/** Time that passes outside of any step. */
const pause = (ms) => timer(ms).pipe(ignoreElements());
`;

const bodies = {
  pinned: 'tokens("p", n, ms)',
  sync: 'from(["a ", "b ", "c "])',
  // Durable, in one turn of the event loop.
  brief: 'concat(context.step("one", () => of("a ", "b ")), of("c "))',
  // Steps with values over time; every other one knows how to go on where it was cut.
  steps: `concat(of("begin "), ...["x", "y", "z"].map((track) => concat(
    context.step("work", () => tokens(track, n, ms), track === "y" ? (before) => tokens(track, n, ms, before.length) : undefined),
    pause(ms), of("| "))))`,
  // Two steps at once: which of them speaks when is the journal's to say.
  merged: `concat(
    merge(context.step("x", () => tokens("x", n, ms)), context.step("y", () => tokens("y", n, ms + 1))), of("end "))`,
  ask: `concat(of("dear "), context.await(key + "?0").pipe(map(({ message }) => textOf(message) + " ")), tokens("t", 2, ms))`,
  askTwice: `concat(...[0, 1].map((i) => concat(
    context.step("think", () => tokens("q" + i + ".", n, ms)),
    context.await(key + "?" + i).pipe(map(({ message }) => textOf(message) + " ")))), of("end "))`,
  // Two questions at once; they are put one after the other.
  askBoth: `concat(merge(...[0, 1].map((i) =>
    context.await(key + "?" + i).pipe(map(({ message }) => textOf(message) + " ")))), of("end "))`,
  // A question and a step at once: the answer may come between any two tokens, and it changes those after it.
  askWhile: `defer(() => {
    let answered = "";
    return merge(
      context.await(key + "?0").pipe(map(({ message }) => (answered = textOf(message), message)), ignoreElements()),
      context.step("x", () => tokens("x", n * 4, ms)).pipe(map((token) => answered + token)));
  })`,
  session: `concat(
    context.session.history.pipe(count(), map((n) => "heard=" + n + " ")),
    defer(() => context.session.setState({ key })).pipe(ignoreElements()),
    context.step("work", () => tokens("x", n, ms)), of("end "))`,
} as const;

export type Kind = keyof typeof bodies;

const kinds = Object.keys(bodies) as Kind[];
const pinned: readonly Kind[] = ['pinned', 'sync'];

export const isDurable = (kind: Kind): boolean => !pinned.includes(kind);
export const agentName = (kind: Kind): string => kind.toLowerCase();

/** The agents' files. JavaScript, because the server is started hundreds of times and need not compile them. */
export const agentFiles: Record<string, string> = Object.fromEntries(
  kinds.map((kind) => [
    `agents/${agentName(kind)}.js`,
    `${head}
export default defineAgent({ name: '${agentName(kind)}', description: 'A test of chaos.' }, (input, context) => {
  const { key, n, ms } = orderOf(input);
  return ${bodies[kind]};
}, { durable: ${isDurable(kind)} });
`,
  ]),
);

export function newOrder(random: Random, key: string): Order {
  return { key, kind: random.pick(kinds), n: random.whole(1, 8), ms: random.whole(1, 15) };
}

/** The answer to a question is the question with another mark, so that whoever answers answers the same. */
export const answerTo = (question: string): string => question.replace('?', '!');

const track = (name: string, n: number): string[] => Array.from({ length: n }, (_, index) => `${name}${index}`);

/** What a run has to say: phases, one after the other, of tracks that may be interleaved. */
function phases({ kind, key, n }: Order): string[][][] {
  const reply = (index: number): string => answerTo(`${key}?${index}`);
  switch (kind) {
    case 'pinned':
      return [[track('p', n)]];
    case 'sync':
    case 'brief':
      return [[['a', 'b', 'c']]];
    case 'steps':
      return [[['begin', ...['x', 'y', 'z'].flatMap((name) => [...track(name, n), '|'])]]];
    case 'merged':
      return [[track('x', n), track('y', n)], [['end']]];
    case 'ask':
      return [[['dear', reply(0), ...track('t', 2)]]];
    case 'askTwice':
      return [[[...[0, 1].flatMap((index) => [...track(`q${index}.`, n), reply(index)]), 'end']]];
    case 'askBoth':
      return [[[reply(0), reply(1), 'end']]];
    case 'askWhile':
      return [[track('x', n * 4)]];
    case 'session':
      return [[['heard', ...track('x', n), 'end']]];
  }
}

/** A token without what depends on the moment: how much of the session there was, and what was answered by then. */
const plain = (token: string, { kind, key }: Order): string =>
  kind === 'askWhile' ? token.replace(answerTo(`${key}?0`), '') : token.replace(/^heard=\d+$/, 'heard');

/** What is wrong with a run's text, or undefined. One that was cut short may end anywhere, but say nothing else. */
export function validation_failed(order: Order, text: string, whole: boolean): string | undefined {
  const said = text.split(' ').filter(Boolean);
  for (const tracks of phases(order)) {
    const open = tracks.map((one) => [...one]);
    while (open.some(({ length }) => length > 0)) {
      const [token] = said.splice(0, 1);
      if (token === undefined) return whole ? `it ends before ${open.map(([next]) => next)}` : undefined;
      const found = open.find(([next]) => next === plain(token, order));
      if (found === undefined) return `it says ${token} where ${open.map(([next]) => next)} is due`;
      found.shift();
    }
  }
  return said.length > 0 ? `it goes on with ${said.join(' ')}` : undefined;
}
