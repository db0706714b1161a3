import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Dice } from '../../support/dice.ts';

const folder = join(import.meta.dirname, 'agents');

/** The agents' files, for a project. */
export const agentFiles: Record<string, string> = Object.fromEntries(
  readdirSync(folder).map((name) => [`agents/${name}`, readFileSync(join(folder, name), 'utf8')]),
);

export type Kind = 'checkout' | 'approve' | 'race' | 'between' | 'caller' | 'turn';

interface Rule {
  /** The steps that a run has to end before it completes. */
  readonly steps: readonly string[];
  /** Steps that a reply may make needless. */
  readonly others?: readonly string[];
  /** A step that needs no reply, and comes last of these; for agents that ask. */
  readonly unasked?: string;
}

/** What the agents do; see `agents/`. */
export const rules: Readonly<Record<Kind, Rule>> = {
  checkout: { steps: ['lock', 'book', 'pay', 'mail'] },
  approve: { steps: ['remind', 'escalate', 'ship'], unasked: 'escalate' },
  race: { steps: ['decide'], others: ['wait', 'escalate'], unasked: 'decide' },
  between: { steps: ['first', 'second', 'ship'], unasked: 'second' },
  caller: { steps: ['check', 'stamp', 'order', 'ship'], unasked: 'stamp' },
  turn: { steps: ['post', 'tell'] },
};

/** One run: the text of its input. The key is unique. */
export interface Order {
  readonly key: string;
  readonly kind: Kind;
  /** The step at whose first begin the node is killed, before it can commit anything else. */
  readonly dies?: string;
  /** Replies at once, or when the step that needs no reply has ended. Without it, the agent `caller` does not ask. */
  readonly reply?: 'soon' | 'late';
  /** Cancels so many milliseconds after the step has begun. */
  readonly cancel?: { readonly step: string; readonly after: number };
}

const kinds = ['checkout', 'checkout', 'approve', 'race', 'between', 'caller', 'turn'] as const;

/** The orders that a client places at once: one, or two that take turns in a session. */
export function newOrders(dice: Dice, name: string): readonly Order[] {
  const kind = dice.of(...kinds);
  if (kind !== 'turn') return [newOrder(dice, name, kind, 0.08)];
  return [newOrder(dice, `${name}.0`, kind, 0.6), newOrder(dice, `${name}.1`, kind, 0)];
}

function newOrder(dice: Dice, key: string, kind: Kind, cancelled: number): Order {
  const { steps, others = [], unasked } = rules[kind];
  const [first = '', ...rest] = [...steps, ...others];
  const asks = unasked !== undefined && (kind !== 'caller' || dice.next() < 0.5);
  return {
    key,
    kind,
    ...(dice.next() < 0.03 && { dies: dice.of(first, ...rest) }),
    ...(asks && { reply: dice.of('soon', 'late', 'late') }),
    ...(dice.next() < cancelled && { cancel: { step: dice.of(first, ...rest), after: dice.below(400) } }),
  };
}
