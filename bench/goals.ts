/** The goals of the bench, and whether they are met. */
import { rows } from './projections.ts';
import { type Figures, median, type Result } from './work.ts';

/** A bound on a figure: absolute, as a ratio to another contestant's, or as the difference from it. */
export interface Goal {
  readonly work: string;
  /** Id of the contestant. */
  readonly of: string;
  readonly figure: string;
  readonly against?: string;
  /** How the two are compared. Default `ratio`. */
  readonly by?: 'ratio' | 'difference';
  readonly bound: 'at least' | 'at most';
  readonly limit: number;
}

const fifty = '50 streams of 1,000 tokens';
const eventsAtLeast = (of: string, limit: number, against: string): Goal => ({
  work: fifty,
  of,
  figure: 'events/s',
  against,
  bound: 'at least',
  limit,
});
const paced = (of: string, limit: number): Goal => ({
  work: '400 streams at 50 tokens/s',
  of,
  figure: 'CPU-µs a token',
  against: 'bare',
  bound: 'at most',
  limit,
});
const firstToken = (of: string, limit: number): Goal => ({
  work: 'First token, unloaded',
  of,
  figure: 'p50, ms',
  against: 'fastify',
  by: 'difference',
  bound: 'at most',
  limit,
});
const syncRuns = (of: string, limit: number): Goal => ({
  work: 'Sync runs, 32 connections',
  of,
  figure: 'runs/s',
  against: 'fastify',
  bound: 'at least',
  limit,
});
const libraries = new Set(rows.map(({ library }) => library));
/** Of each protocol but the server's own, which is the first row. */
const protocols = rows.slice(1).flatMap(({ id, library }): Goal[] => {
  if (libraries.has(id)) return [];
  const goal = { work: 'Frames of an answer of 20,000 tokens', of: id, figure: 'frames/s', bound: 'at least' } as const;
  return [
    { ...goal, against: 'ACP', limit: 0.5 },
    ...(library === undefined ? [] : [{ ...goal, against: library, limit: 5 }]),
  ];
});
const atMost = (work: string, of: string, figure: string, limit: number): Goal => ({
  work,
  of,
  figure,
  bound: 'at most',
  limit,
});

export const goals: readonly Goal[] = [
  eventsAtLeast('rivulet-memory', 1, 'fastify'),
  eventsAtLeast('rivulet-sqlite', 0.6, 'fastify'),
  eventsAtLeast('rivulet-redis', 0.25, 'fastify'),
  eventsAtLeast('rivulet-postgres', 0.25, 'fastify'),
  eventsAtLeast('rivulet-memory', 20, 'langgraph'),
  eventsAtLeast('rivulet-memory', 15, 'mastra'),
  eventsAtLeast('rivulet-memory', 10, 'a2a'),
  paced('rivulet-memory', 1.3),
  paced('rivulet-sqlite', 2),
  atMost('1 stream of 3,000 tokens', 'rivulet-memory', 'ms', 20),
  firstToken('rivulet-memory', 0.3),
  firstToken('rivulet-sqlite', 0.6),
  syncRuns('rivulet-memory', 0.5),
  syncRuns('rivulet-sqlite', 0.3),
  ...protocols,
  ...['rivulet-memory', 'rivulet-sqlite'].flatMap((of) => [
    atMost('One run with 100 readers', of, 'CPU-µs an event and reader', 3),
    { ...atMost('10,000 idle streams', of, 'KB a stream', 12), against: 'bare', by: 'difference' as const },
    atMost('CPU a token in longer runs', of, '30,000 : 300', 1.2),
    atMost('10,000 finished runs', of, 'time, of the first', 1.2),
  ]),
];

const digits = (value: number): string => value.toFixed(Math.abs(value) < 10 ? 2 : 1);

/** Whether a goal is met, with the figure; where it is not, by how much it is missed. */
export function judge(goal: Goal, { rows }: Result, nameOf: (id: string) => string): string {
  const { of, figure, against, by = 'ratio', bound, limit } = goal;
  const sign = bound === 'at least' ? '≥' : '≤';
  const unit = against === undefined ? '' : by === 'ratio' ? `× ${nameOf(against)}` : ` over ${nameOf(against)}`;
  const wanted = `${figure} ${sign} ${limit}${unit}`;
  const found = compared(rows.get(of), against === undefined ? undefined : rows.get(against), goal);
  if (Number.isNaN(found)) return `${wanted}: not measured`;
  const met = bound === 'at least' ? found >= limit : found <= limit;
  return `${wanted}: ${met ? 'met' : `**missed by ${digits(Math.abs(found - limit))}**`}, ${digits(found)}`;
}

/** The median over rounds: in one round, both contestants had the same conditions. */
function compared(own: readonly Figures[] = [], others: readonly Figures[] | undefined, goal: Goal): number {
  const { figure, against, by } = goal;
  return median(
    own.map((figures, round) => {
      const ownFigure = figures[figure] ?? Number.NaN;
      if (against === undefined) return ownFigure;
      const otherFigure = others?.[round]?.[figure] ?? Number.NaN;
      return by === 'difference' ? ownFigure - otherFigure : ownFigure / otherFigure;
    }),
  );
}
