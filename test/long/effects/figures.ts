import { isRunLine, type RunLine } from './effect-ledger.ts';
import type { EffectsResult } from './soak-effects.ts';

/** The measurements, one per line. */
export function effectFigures({ seconds, acts, ledger, placed }: EffectsResult): string[] {
  const lines = ledger.lines.filter(isRunLine);
  const count = (what: RunLine['what']): number => lines.filter((line) => line.what === what).length;
  const effects = lines.filter(({ what }) => what === 'begin').map(({ run, step }) => `${run} ${step}`);
  const replies = placed.flatMap((one) => one.replies);
  const outcomes = new Map<string, number>();
  for (const { order, status } of placed) {
    const outcome = `${order.kind} ${status}`;
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
  }
  const rows: readonly (readonly [string, string | number])[] = [
    ['seconds', seconds],
    ['runs', `${placed.length}, in ${count('enter')} lives`],
    [
      'effects',
      `${effects.length} begun, ${effects.length - new Set(effects).size} of them again, ${count('end')} ended`,
    ],
    ['undone', count('undo')],
    ['kills', `${acts.kill}, ${lines.filter(({ dies }) => dies).length} of them asked for by a step`],
    ['pauses', acts.pause],
    ['stops', acts.stop],
    ['replies', `${replies.length}, ${replies.filter(({ outcome }) => outcome === 'accepted').length} accepted`],
    ['cancels', `${placed.filter(({ cancel }) => cancel?.outcome === 'accepted').length} accepted`],
  ];
  return [
    ...rows.map(([name, value]) => `${name.padEnd(18)}${value}`),
    ...[...outcomes].toSorted().map(([name, runs]) => `  ${String(runs).padStart(6)}  ${name}`),
  ];
}
