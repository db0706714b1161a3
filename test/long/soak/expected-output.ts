import type { Kind, Order } from './orders.ts';

/** The replies that clients sent to one question, and those that a server accepted. */
export interface Replies {
  readonly sent: Set<string>;
  readonly accepted: Set<string>;
}

/** The text of a reply. Two clients that reply to the same question have different names. */
export const replyTo = (question: string, client: string): string => `${question.replace('?', '!')}.${client}`;

const track = (name: string, n: number): string[] => Array.from({ length: n }, (_, index) => `${name}${index}`);

/** The output of a run: phases, one after the other, of tracks that may be interleaved. */
function phasesOf({ kind, n }: Order): string[][][] {
  const one = (...tokens: string[]): string[][] => [tokens];
  const phases: Record<Kind, () => string[][][]> = {
    pinned: () => [one(...track('p', n))],
    pinnedAsk: () => [one(...track('p', n), 'reply0', ...track('q', n))],
    sync: () => [one('a', 'b', 'c')],
    brief: () => [one('a', 'b', 'c')],
    steps: () => [
      one(
        'begin',
        ...['x', 'y', 'z'].flatMap((name) => [`${name}:`, ...track(name, n), ...track(`${name}.`, 2)]),
        'sum:',
      ),
    ],
    merged: () => [one('d:'), [track('x', n), track('y', n)], one('e:', 'sum:')],
    ask: () => [one('d:', 'a0', 'a1', 'reply0', ...track('t', n), 'sum:')],
    askTwice: () => [one('d:', ...track('t', n), 'reply0', 'e:', ...track('u', n), 'reply1', 'sum:')],
    askBoth: () => [one('reply0', 'reply1', 'end')],
    askWhile: () => [one(...track('x', n * 4))],
    session: () => [one('heard:', ...track('x', n), 'end')],
    turn: () => [one('turn:', 'd:', ...track('t', n), 'sum:')],
  };
  return phases[kind]();
}

/** A token without marks, random values and replies. */
function normalized(token: string, { key }: Order): string {
  const [text = '', rest] = token.split('/');
  if (rest !== undefined) return rest;
  const reply = text.startsWith(`${key}!`) ? /^!(\d+)\./.exec(text.slice(key.length))?.[1] : undefined;
  return reply === undefined ? text.replace(/@.*$/, '').replace(/:.*$/, ':') : `reply${reply}`;
}

/** The problem with the tokens of a run, or undefined. A run that was cut short may end after any token. */
export function outputProblem(
  order: Order,
  tokens: readonly string[],
  complete: boolean,
  replies: readonly Replies[],
): string | undefined {
  return orderProblem(order, [...tokens], complete) ?? drawProblem(tokens) ?? replyProblem(order, tokens, replies);
}

function orderProblem(order: Order, tokens: string[], complete: boolean): string | undefined {
  for (const tracks of phasesOf(order)) {
    const open = tracks.map((names) => [...names]);
    while (open.some(({ length }) => length > 0)) {
      const token = tokens.shift();
      const expected = open.map(([next]) => next).filter((next) => next !== undefined);
      if (token === undefined) return complete ? `the output ends before ${expected}` : undefined;
      const found = open.find(([next]) => next === normalized(token, order));
      if (found === undefined) return `the output has ${token}, expected ${expected}`;
      found.shift();
    }
  }
  return tokens.length > 0 ? `the output has more tokens: ${tokens.join(' ')}` : undefined;
}

/** Random values are drawn once, and are the same at the end. */
function drawProblem(tokens: readonly string[]): string | undefined {
  const drawn = tokens.flatMap((token) => /^[a-z]:(.*)$/.exec(token)?.[1] ?? []);
  const sum = tokens.find((token) => token.startsWith('sum:'))?.slice(4);
  if (new Set(drawn).size !== drawn.length) return `a value was drawn twice: ${drawn}`;
  return sum === undefined || sum === drawn.join(',')
    ? undefined
    : `${drawn.join(',')} was drawn, and the end has ${sum}`;
}

/** A reply in the output was sent; if the server accepted one, it is that one. */
function replyProblem({ key }: Order, tokens: readonly string[], replies: readonly Replies[]): string | undefined {
  for (const token of tokens.filter((text) => text.startsWith(`${key}!`))) {
    const [reply = ''] = token.split('/');
    const { sent, accepted } = replies[Number(reply.slice(key.length + 1).split('.')[0])] ?? {};
    if (sent?.has(reply) !== true) return `the output has the reply ${reply}, which no client sent`;
    if (accepted !== undefined && accepted.size > 0 && !accepted.has(reply))
      return `the output has the reply ${reply}, and ${[...accepted]} was accepted`;
  }
  return undefined;
}

/** The process that wrote a token, if the token has its mark: the node's name and the number of its start. */
export const markOf = (text: string): string | undefined => /[@:](n\d+\.\d+)/.exec(text)?.[1];
