import type { Dice } from '../../support/dice.ts';

/** What a run has to do, as the JSON text of its input. The key is unique. */
export interface Order {
  readonly key: string;
  readonly kind: Kind;
  /** Tokens of each track, and milliseconds between them. */
  readonly n: number;
  readonly ms: number;
}

// The underscore keeps it from being loaded as an agent. Tokens have the mark of the process that wrote them, where they
// are journaled or the agent is not durable. Random values appear where they are drawn and again at the end, so a replay
// with other values than the log shows.
const script = `
import { randomBytes } from 'node:crypto';
import { count, defer, ignoreElements, interval, map, merge, of, take } from 'rxjs';

const mark = process.env.NODE_MARK;
const tokens = (track, n, ms, from, end) => interval(ms).pipe(take(n - from), map((i) => track + (i + from) + end));
const textOf = ({ parts }) => parts.map(({ content }) => content).join('');

export class Script {
  #drawn = [];
  #turn = 0;

  constructor(input, context) {
    this.order = JSON.parse(input[0].parts[0].content);
    this.context = context;
  }

  /** A step with a random result. */
  draw(track) {
    return this.context.step('draw', () => of(mark + '-' + randomBytes(6).toString('hex'))).pipe(map((value) => {
      this.#drawn.push(value);
      return track + ':' + value + ' ';
    }));
  }

  /** A step that continues where it was interrupted. */
  work(track, { n, ms } = this.order) {
    return this.context.step('work', () => tokens(track, n, ms, 0, '@' + mark + ' '),
      (before) => tokens(track, n, ms, before.length, '@' + mark + ' '));
  }

  /** A step that starts again after an interruption, with the same output. */
  again(track, { n, ms } = this.order) {
    return this.context.step('again', () => tokens(track, n, ms, 0, ' '));
  }

  /** Tokens outside of steps, the same in each execution. */
  plain(track, n = 2) {
    return tokens(track, n, this.order.ms, 0, ' ');
  }

  /** Tokens outside of steps, with the mark of the process. */
  marked(track) {
    return tokens(track, this.order.n, this.order.ms, 0, '@' + mark + ' ');
  }

  ask(index) {
    return this.context.await(this.order.key + '?' + index).pipe(map(({ message }) => textOf(message) + ' '));
  }

  /** A question and a step at the same time: the tokens after the reply repeat it. */
  askWhile() {
    let reply = '';
    return merge(
      this.ask(0).pipe(map((text) => (reply = text.trim() + '/')), ignoreElements()),
      this.again('x', { ...this.order, n: this.order.n * 4 }).pipe(map((token) => reply + token)));
  }

  /** The number of runs before this one, in the session's state. */
  turn() {
    return defer(() => this.context.session.state()).pipe(map((state) => 'turn:' + (this.#turn = state?.turn ?? 0) + ' '));
  }

  next() {
    return defer(() => this.context.session.setState({ turn: this.#turn + 1 })).pipe(ignoreElements());
  }

  history() {
    return this.context.session.history.pipe(count(), map((n) => 'heard:' + n + ' '));
  }

  sum() {
    return defer(() => of('sum:' + this.#drawn.join(',') + ' '));
  }
}
`;

const bodies = {
  pinned: 's.marked("p")',
  pinnedAsk: 'concat(s.marked("p"), s.ask(0), s.marked("q"))',
  sync: 'of("a ", "b ", "c ")',
  // Durable, and complete in one turn of the event loop.
  brief: 'concat(context.step("one", () => of("a ", "b ")), of("c "))',
  steps: `concat(of("begin "), ...["x", "y", "z"].map((track) => concat(
    s.draw(track), track === "y" ? s.again(track) : s.work(track), s.plain(track + "."))), s.sum())`,
  // Two steps at the same time: the journal decides their order.
  merged: 'concat(s.draw("d"), merge(s.work("x"), s.again("y")), s.draw("e"), s.sum())',
  ask: 'concat(s.draw("d"), s.plain("a"), s.ask(0), s.work("t"), s.sum())',
  askTwice: 'concat(s.draw("d"), s.work("t"), s.ask(0), s.draw("e"), s.work("u"), s.ask(1), s.sum())',
  // Two questions at the same time; the engine asks them one after the other.
  askBoth: 'concat(merge(s.ask(0), s.ask(1)), of("end "))',
  askWhile: 's.askWhile()',
  session: 'concat(s.history(), s.next(), s.work("x"), of("end "))',
  // Runs of one session that take turns.
  turn: 'concat(s.turn(), s.draw("d"), s.work("t"), s.next(), s.sum())',
} as const;

export type Kind = keyof typeof bodies;

const kinds = Object.keys(bodies) as Kind[];
const notDurable: readonly Kind[] = ['pinned', 'pinnedAsk', 'sync'];

export const isDurable = (kind: Kind): boolean => !notDurable.includes(kind);
export const agentName = (kind: Kind): string => kind.toLowerCase();

/** The agents' files. JavaScript, because servers are restarted often and need not compile them. */
export const agentFiles: Record<string, string> = {
  'agents/_script.js': script,
  ...Object.fromEntries(
    kinds.map((kind) => [
      `agents/${agentName(kind)}.js`,
      `
import { defineAgent } from 'rivulet';
import { concat, merge, of } from 'rxjs';
import { Script } from './_script.js';

export default defineAgent({ name: '${agentName(kind)}', description: 'An agent of the soak tests.' }, (input, context) => {
  const s = new Script(input, context);
  return ${bodies[kind]};
}, { durable: ${isDurable(kind)} });
`,
    ]),
  ),
};

/** The sizes of a plan's orders, and how often each kind occurs. */
export interface OrderMix {
  readonly kinds: readonly [Kind, ...Kind[]];
  /** Bounds of `n` and `ms`, the upper ones excluded. */
  readonly n: readonly [number, number];
  readonly ms: readonly [number, number];
}

/** The orders that a client places at once: one, or three that take turns in a session. */
export function newOrders(dice: Dice, { kinds, n, ms }: OrderMix, name: string): readonly Order[] {
  const kind = dice.of<Kind>(...kinds);
  const between = ([from, end]: readonly [number, number]): number => from + dice.below(end - from);
  const order = (key: string): Order => ({ key, kind, n: between(n), ms: between(ms) });
  return kind === 'turn' ? [0, 1, 2].map((index) => order(`${name}.${index}`)) : [order(name)];
}
