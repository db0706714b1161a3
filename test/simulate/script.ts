import type { Random } from './random.ts';

/** An action of an agent; drawn from the seed, and sent to the agent as input. `tag` is unique in the script. */
export type Act = { readonly tag: string } & (
  | { readonly do: 'say' | 'message' | 'generic' | 'state' | 'history' | 'usage' }
  | { readonly do: 'wait'; readonly ms: number }
  /** Durable agents do the work once. */
  | { readonly do: 'step'; readonly ms: number; readonly values: number }
  /** Seconds until the await fails; 0 for the server's default. */
  | { readonly do: 'ask'; readonly expires: number }
  /** An effect with a key that a step before has made. */
  | { readonly do: 'pay'; readonly ms: number }
  /** An await, and an effect that undoes what came before where no reply comes. */
  | { readonly do: 'hold' }
  /** An await beside a step, each of whose values the agent says. */
  | { readonly do: 'talk'; readonly ms: number; readonly values: number }
  /** An await against a timer. */
  | { readonly do: 'race'; readonly ms: number }
  | { readonly do: 'merge' | 'call'; readonly acts: readonly (readonly Act[])[] }
  | { readonly do: 'throw' | 'never' | 'nonsense' | 'unstorable' }
  /** Work that goes on after it is unsubscribed, and uses the context when the run may have ended. */
  | { readonly do: 'stray'; readonly ms: number }
);

/** The style of the agent: a chain of Observables, or an async generator. */
type Style = 'chain' | 'generator';

export interface Script {
  readonly style: Style;
  readonly durable: boolean;
  readonly acts: readonly Act[];
}

/** The name of the agent that performs a script. */
export const agentOf = ({ style, durable }: Script): string => `${style}${durable ? '-durable' : ''}`;

export function drawScript(random: Random): Script {
  const durable = random.chance(0.55);
  let tags = 0;
  const tag = (): string => {
    tags += 1;
    return String(tags);
  };
  const ms = (): number =>
    random.of(
      random.between(1, 20),
      random.between(20, 800),
      random.between(800, 5_000),
      random.between(5_000, 14_000),
    );
  const some = (depth: number, most: number): Act[] =>
    Array.from({ length: random.between(1, most) }, () => draw(depth));
  const draw = (depth: number): Act => {
    const kind = random.weighted<Act['do']>([
      [10, 'say'],
      [6, 'wait'],
      [8, 'step'],
      [5, 'ask'],
      [1, 'message'],
      [1, 'generic'],
      [1, 'state'],
      [1, 'history'],
      [1, 'usage'],
      [1, 'stray'],
      [2, 'pay'],
      [1, 'hold'],
      [depth > 0 ? 1 : 0, 'race'],
      [depth > 0 ? 1 : 0, 'talk'],
      [depth > 0 ? 1 : 0, 'merge'],
      [depth > 0 ? 1 : 0, 'call'],
      [0.3, 'throw'],
      [0.6, 'never'],
      [0.15, 'nonsense'],
      [0.15, 'unstorable'],
    ]);
    switch (kind) {
      case 'wait':
      case 'pay':
      case 'race':
      case 'stray':
        return { tag: tag(), do: kind, ms: ms() };
      case 'step':
        return {
          tag: tag(),
          do: kind,
          ms: random.chance(0.3) ? 0 : ms(),
          values: random.chance(0.8) ? 1 : random.below(4),
        };
      case 'talk':
        return { tag: tag(), do: kind, ms: random.between(5, 60), values: random.between(10, 100) };
      case 'ask':
        return { tag: tag(), do: kind, expires: random.chance(0.2) ? random.between(2, 8) : 0 };
      case 'merge':
        return { tag: tag(), do: kind, acts: [some(depth - 1, 3), some(depth - 1, 3)] };
      case 'call':
        return { tag: tag(), do: kind, acts: [some(depth - 1, 3)] };
      default:
        return { tag: tag(), do: kind };
    }
  };
  return { style: random.of<Style>('chain', 'generator'), durable, acts: some(2, 7) };
}

/** Every act of a script, nested ones as well. */
export function allActs(acts: readonly Act[]): Act[] {
  return acts.flatMap((act) => ('acts' in act ? [act, ...act.acts.flatMap(allActs)] : [act]));
}

/** A script as a readable line. */
export function describe(acts: readonly Act[]): string {
  return acts
    .map((act) => {
      const name = `${act.do}#${act.tag}`;
      if ('acts' in act) return `${name}(${act.acts.map(describe).join(' | ')})`;
      if (act.do === 'step' || act.do === 'talk') return `${name}(${act.ms} ms, ${act.values} values)`;
      if (act.do === 'ask') return act.expires > 0 ? `${name}(${act.expires} s)` : name;
      return 'ms' in act ? `${name}(${act.ms} ms)` : name;
    })
    .join(', ');
}
