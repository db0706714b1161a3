/** Rounds: contestants alternate, and each round begins with another one. */
import { Contestant, type Entry } from './contestant.ts';
import type { Figures, MeasuredInRounds, Result } from './work.ts';

export interface RoundOptions {
  readonly rounds: number;
  readonly pinned: boolean;
  /** Milliseconds of warm-up before the first round, for the compilers. New processes for each round have none. */
  readonly warmUp: number;
  /** Milliseconds of a turn: see `measure`. */
  readonly turn: number;
  /** Called at each step. */
  readonly progress: (line: string) => void;
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Excludes a contestant that does not start or answers wrongly, and continues with the others. */
export async function compare(
  work: MeasuredInRounds,
  entries: readonly Entry[],
  options: RoundOptions,
): Promise<Result> {
  const { rounds, pinned, warmUp, turn, progress } = options;
  const excluded = new Map<string, string>();
  const rows = new Map<string, Figures[]>();
  const running = new Map<string, Contestant>();
  const attempt = async (entry: Entry, what: () => Promise<unknown>): Promise<void> => {
    await what().catch(async (error: unknown) => {
      excluded.set(entry.id, messageOf(error));
      rows.delete(entry.id);
      progress(`${work.name} · ${entry.name} is excluded: ${messageOf(error)}`);
      await running.get(entry.id)?.stop();
    });
  };
  const participants = entries.filter((entry) => work.takes(entry));
  const start = async (entry: Entry): Promise<Contestant> => {
    const contestant = await Contestant.start(entry, { pinned });
    running.set(entry.id, contestant);
    return contestant;
  };
  const contestantOf = async (entry: Entry): Promise<Contestant> =>
    (!work.fresh && running.get(entry.id)) || start(entry);
  const measure = async (entry: Entry): Promise<Figures> => {
    const contestant = await contestantOf(entry);
    const figures = await work.measure(contestant, turn);
    if (work.fresh) await contestant.stop();
    return figures;
  };
  /** Calls back for those that are not excluded, beginning with another one in each round. */
  const takeTurns = async (round: number, what: (entry: Entry) => Promise<unknown>): Promise<void> => {
    const first = round % participants.length;
    for (const entry of [...participants.slice(first), ...participants.slice(0, first)])
      if (!excluded.has(entry.id)) await attempt(entry, () => what(entry));
  };
  for (const { id } of participants) rows.set(id, []);
  if (!work.fresh) {
    await takeTurns(0, start);
    // By turns as well: each has been idle for as long as the others when the first round begins.
    const worked = new Map<string, number>();
    const isCold = ({ id }: Entry): boolean => !excluded.has(id) && (worked.get(id) ?? 0) < warmUp;
    const warm = async (entry: Entry): Promise<void> => {
      if (!isCold(entry)) return;
      const begun = performance.now();
      const contestant = await contestantOf(entry);
      await (work.warm?.(contestant) ?? work.measure(contestant, turn));
      worked.set(entry.id, (worked.get(entry.id) ?? 0) + performance.now() - begun);
    };
    for (let time = 0; participants.some(isCold); time += 1) await takeTurns(time, warm);
  }
  for (let round = 0; round < rounds; round += 1) {
    await takeTurns(round, async (entry) => {
      const figures = await measure(entry);
      rows.get(entry.id)?.push(figures);
      progress(`${work.name} · round ${round + 1} of ${rounds} · ${entry.name} · ${figuresText(work, figures)}`);
    });
  }
  await Promise.all([...running.values()].map((contestant) => contestant.stop()));
  return { work, rows, excluded };
}

const figuresText = ({ columns }: MeasuredInRounds, figures: Figures): string =>
  columns.map(({ name, digits }) => `${name} ${figures[name]?.toFixed(digits)}`).join(', ');
