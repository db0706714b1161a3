import type { Dice } from '../../support/dice.ts';

/** What a run is asked to do, as the JSON text of its input. `key` is one of its own. */
export interface Order {
  readonly key: string;
  readonly kind: Kind;
  /** How many tokens a piece of work has, and the milliseconds between them. */
  readonly n: number;
  readonly ms: number;
}

// Not an agent's file, by its name. The mark of the process is in every token that is journaled or pinned: whoever
// reads sees who wrote it. What is drawn by lot is said where it is drawn and again at the end, so that an execution
// that knew of other lots than those in the log gives itself away.
const speech = `
import { randomBytes } from 'node:crypto';
import { defer, ignoreElements, interval, map, of, take } from 'rxjs';

const mark = process.env.NODE_MARK;
const tokens = (track, n, ms, from, end) => interval(ms).pipe(take(n - from), map((i) => track + (i + from) + end));

export class Speech {
  #drawn = [];
  #turn = 0;

  constructor(input, context) {
    this.order = JSON.parse(input[0].parts[0].content);
    this.context = context;
  }

  /** A step whose result is never twice the same. */
  draw(track) {
    return this.context.step('draw', () => of(mark + '-' + randomBytes(6).toString('hex'))).pipe(map((lot) => {
      this.#drawn.push(lot);
      return track + ':' + lot + ' ';
    }));
  }

  /** A step that knows how to go on where it was cut. */
  work(track, { n, ms } = this.order) {
    return this.context.step('work', () => tokens(track, n, ms, 0, '@' + mark + ' '),
      (before) => tokens(track, n, ms, before.length, '@' + mark + ' '));
  }

  /** A step that begins again, and says the same. */
  again(track, { n, ms } = this.order) {
    return this.context.step('again', () => tokens(track, n, ms, 0, ' '));
  }

  /** Outside of any step: the same each time. */
  plain(track, n = 2) {
    return tokens(track, n, this.order.ms, 0, ' ');
  }

  /** What only this process says. */
  marked(track) {
    return tokens(track, this.order.n, this.order.ms, 0, '@' + mark + ' ');
  }

  ask(index) {
    return this.context.await(this.order.key + '?' + index).pipe(
      map(({ message }) => message.parts.map(({ content }) => content).join('') + ' '));
  }

  /** How many came before, in the session's state. */
  turn() {
    return defer(() => this.context.session.state()).pipe(map((state) => 'turn:' + (this.#turn = state?.turn ?? 0) + ' '));
  }

  next() {
    return defer(() => this.context.session.setState({ turn: this.#turn + 1 })).pipe(ignoreElements());
  }

  sum() {
    return defer(() => of('sum:' + this.#drawn.join(',') + ' '));
  }
}
`;

const bodies = {
  pinned: 's.marked("p")',
  pinnedAsk: 'concat(s.marked("p"), s.ask(0), s.marked("q"))',
  steps: `concat(of("begin "), ...["x", "y", "z"].map((track) => concat(
    s.draw(track), track === "y" ? s.again(track) : s.work(track), s.plain(track + "."))), s.sum())`,
  // Two steps at once: which of them speaks when is the journal's to say.
  merged: 'concat(s.draw("d"), merge(s.work("x"), s.again("y")), s.draw("e"), s.sum())',
  ask: 'concat(s.draw("d"), s.plain("a"), s.ask(0), s.work("t"), s.sum())',
  askTwice: 'concat(s.draw("d"), s.work("t"), s.ask(0), s.draw("e"), s.work("u"), s.ask(1), s.sum())',
  // Runs of one session that take turns.
  turn: 'concat(s.turn(), s.draw("d"), s.work("t"), s.next(), s.sum())',
} as const;

export type Kind = keyof typeof bodies;

const kinds = Object.keys(bodies) as Kind[];
const pinned: readonly Kind[] = ['pinned', 'pinnedAsk'];

export const isDurable = (kind: Kind): boolean => !pinned.includes(kind);
export const agentName = (kind: Kind): string => kind.toLowerCase();

/** The agents' files. JavaScript, because nodes are started again and again and need not compile them. */
export const agentFiles: Record<string, string> = {
  'agents/_speech.js': speech,
  ...Object.fromEntries(
    kinds.map((kind) => [
      `agents/${agentName(kind)}.js`,
      `
import { defineAgent } from 'rivulet';
import { concat, merge, of } from 'rxjs';
import { Speech } from './_speech.js';

export default defineAgent({ name: '${agentName(kind)}', description: 'A test of many nodes.' }, (input, context) => {
  const s = new Speech(input, context);
  return ${bodies[kind]};
}, { durable: ${isDurable(kind)} });
`,
    ]),
  ),
};

/** Orders that one customer gives at once: one, or a few that take turns in a session. */
export function newOrders(dice: Dice, name: string): readonly Order[] {
  const kind = dice.of<Kind>(
    ...(['steps', 'steps', 'steps', 'steps', 'merged', 'merged'] as const),
    ...(['ask', 'ask', 'askTwice', 'pinned', 'pinned', 'pinnedAsk', 'turn'] as const),
  );
  const one = (key: string): Order => ({ key, kind, n: 3 + dice.below(20), ms: 8 + dice.below(40) });
  return kind === 'turn' ? [0, 1, 2].map((index) => one(`${name}.${index}`)) : [one(name)];
}
