/** Rounds: contestants alternate within each, and begin at another place each time. */
import { Contestant, type Entry } from './contestant.ts';
import type { Figures, Measured, Result } from './work.ts';

export interface RoundOptions {
  readonly rounds: number;
  readonly pinned: boolean;
  /** Milliseconds of work before the rounds that count, for the compilers; fresh processes have none, for it would not last. */
  readonly warmUp: number;
  /** Told of each step. */
  readonly progress: (line: string) => void;
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** A contestant that does not come up or does the work wrongly is out of it; the others go on. */
export async function compare(work: Measured, entries: readonly Entry[], options: RoundOptions): Promise<Result> {
  const { rounds, pinned, warmUp, progress } = options;
  const out = new Map<string, string>();
  const rows = new Map<string, Figures[]>();
  const up = new Map<string, Contestant>();
  const attempt = async (entry: Entry, what: () => Promise<void>): Promise<void> => {
    await what().catch(async (error: unknown) => {
      out.set(entry.id, messageOf(error));
      rows.delete(entry.id);
      progress(`${work.name} · ${entry.name} is left out: ${messageOf(error)}`);
      await up.get(entry.id)?.stop();
    });
  };
  const takers = entries.filter((entry) => work.takes(entry));
  const start = async (entry: Entry): Promise<Contestant> => {
    const contestant = await Contestant.start(entry, { pinned });
    up.set(entry.id, contestant);
    return contestant;
  };
  for (const entry of takers) {
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
    const turn = round % takers.length;
    for (const entry of [...takers.slice(turn), ...takers.slice(0, turn)].filter(({ id }) => !out.has(id))) {
      await attempt(entry, async () => {
        const contestant = (!work.fresh && up.get(entry.id)) || (await start(entry));
        const figures = await work.measure(contestant);
        if (work.fresh) await contestant.stop();
        rows.get(entry.id)?.push(figures);
        progress(`${work.name} · round ${round + 1} of ${rounds} · ${entry.name} · ${inWords(work, figures)}`);
      });
    }
  }
  await Promise.all([...up.values()].map((contestant) => contestant.stop()));
  return { work, rows, out };
}

const inWords = ({ columns }: Measured, figures: Figures): string =>
  columns.map(({ name, digits }) => `${name} ${figures[name]?.toFixed(digits)}`).join(', ');
