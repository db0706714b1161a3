/** Rounds: contestants alternate, and each round begins with another one. */
import { Contestant, type Entry } from './contestant.ts';
import type { Figures, MeasuredInRounds, Result } from './work.ts';

export interface RoundOptions {
  readonly rounds: number;
  readonly pinned: boolean;
  /** Milliseconds of warm-up before the first round, for the compilers. New processes for each round have none. */
  readonly warmUp: number;
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
  const { rounds, pinned, warmUp, progress } = options;
  const excluded = new Map<string, string>();
  const rows = new Map<string, Figures[]>();
  const running = new Map<string, Contestant>();
  const attempt = async (entry: Entry, what: () => Promise<void>): Promise<void> => {
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
  for (const entry of participants) {
    rows.set(entry.id, []);
    if (work.fresh) continue;
    await attempt(entry, async () => {
      const contestant = await start(entry);
      const begun = performance.now();
      do await work.measure(contestant);
      while (performance.now() - begun < warmUp);
    });
  }
  for (let round = 0; round < rounds; round += 1) {
    const first = round % participants.length;
    for (const entry of [...participants.slice(first), ...participants.slice(0, first)].filter(
      ({ id }) => !excluded.has(id),
    )) {
      await attempt(entry, async () => {
        const contestant = (!work.fresh && running.get(entry.id)) || (await start(entry));
        const figures = await work.measure(contestant);
        if (work.fresh) await contestant.stop();
        rows.get(entry.id)?.push(figures);
        progress(`${work.name} · round ${round + 1} of ${rounds} · ${entry.name} · ${figuresText(work, figures)}`);
      });
    }
  }
  await Promise.all([...running.values()].map((contestant) => contestant.stop()));
  return { work, rows, excluded };
}

const figuresText = ({ columns }: MeasuredInRounds, figures: Figures): string =>
  columns.map(({ name, digits }) => `${name} ${figures[name]?.toFixed(digits)}`).join(', ');
