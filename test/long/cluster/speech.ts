import type { Kind, Order } from './agents.ts';

/** What was sent as an answer to one question, and for which of it the server said that it was taken. */
export interface Reply {
  readonly sent: Set<string>;
  readonly taken: Set<string>;
}

/** The text of an answer; of two who answer at once, each has a name. */
export const replyTo = (question: string, who: string): string => `${question.replace('?', '!')}.${who}`;

const track = (name: string, n: number): string[] => Array.from({ length: n }, (_, index) => `${name}${index}`);

/** What a run has to say: phases, one after the other, of tracks that may be interleaved. */
function phases({ kind, n }: Order): string[][][] {
  const alone = (...tokens: string[]): string[][] => [tokens];
  const said: Record<Kind, () => string[][][]> = {
    pinned: () => [alone(...track('p', n))],
    pinnedAsk: () => [alone(...track('p', n), 'reply0', ...track('q', n))],
    steps: () => [
      alone(
        'begin',
        ...['x', 'y', 'z'].flatMap((one) => [`${one}:`, ...track(one, n), ...track(`${one}.`, 2)]),
        'sum:',
      ),
    ],
    merged: () => [alone('d:'), [track('x', n), track('y', n)], alone('e:', 'sum:')],
    ask: () => [alone('d:', 'a0', 'a1', 'reply0', ...track('t', n), 'sum:')],
    askTwice: () => [alone('d:', ...track('t', n), 'reply0', 'e:', ...track('u', n), 'reply1', 'sum:')],
    turn: () => [alone('turn:', 'd:', ...track('t', n), 'sum:')],
  };
  return said[kind]();
}

/** A token without what nobody can know beforehand. */
function plain(token: string, { key }: Order): string {
  const reply = token.startsWith(`${key}!`) ? /^!(\d+)\./.exec(token.slice(key.length))?.[1] : undefined;
  return reply === undefined ? token.replace(/@.*$/, '').replace(/:.*$/, ':') : `reply${reply}`;
}

/** What is wrong with a run's tokens, or undefined. One that was cut short may end anywhere, but say nothing else. */
export function validation_failed(
  order: Order,
  tokens: readonly string[],
  whole: boolean,
  replies: readonly Reply[],
): string | undefined {
  return misplaced(order, [...tokens], whole) ?? mislaid(tokens) ?? misheard(order, tokens, replies);
}

function misplaced(order: Order, said: string[], whole: boolean): string | undefined {
  for (const tracks of phases(order)) {
    const open = tracks.map((one) => [...one]);
    while (open.some(({ length }) => length > 0)) {
      const token = said.shift();
      const due = open.map(([next]) => next).filter((next) => next !== undefined);
      if (token === undefined) return whole ? `it ends before ${due}` : undefined;
      const found = open.find(([next]) => next === plain(token, order));
      if (found === undefined) return `it says ${token} where ${due} is due`;
      found.shift();
    }
  }
  return said.length > 0 ? `it goes on with ${said.join(' ')}` : undefined;
}

/** Lots that were drawn once are the same at the end. */
function mislaid(tokens: readonly string[]): string | undefined {
  const drawn = tokens.flatMap((token) => /^[a-z]:(.*)$/.exec(token)?.[1] ?? []);
  const sum = tokens.find((token) => token.startsWith('sum:'))?.slice(4);
  if (new Set(drawn).size !== drawn.length) return `a lot was drawn twice: ${drawn}`;
  return sum === undefined || sum === drawn.join(',')
    ? undefined
    : `it drew ${drawn.join(',')}, and at the end it knows of ${sum}`;
}

/** What it heard was sent; and where the server told somebody that it took his answer, it is that one. */
function misheard({ key }: Order, tokens: readonly string[], replies: readonly Reply[]): string | undefined {
  for (const token of tokens.filter((one) => one.startsWith(`${key}!`))) {
    const { sent, taken } = replies[Number(token.slice(key.length + 1).split('.')[0])] ?? {};
    if (sent?.has(token) !== true) return `it heard ${token}, which nobody sent`;
    if (taken !== undefined && taken.size > 0 && !taken.has(token))
      return `it heard ${token}, and ${[...taken]} was taken`;
  }
  return undefined;
}

/** The process that wrote a token, as far as it says so: name of the node, and which of its lives. */
export const markOf = (text: string): string | undefined => /[@:](n\d+\.\d+)/.exec(text)?.[1];
