import type { Played } from './play.ts';

/** What was measured, a line each. */
export function figures({ seconds, acts, ledger, requests, cuts, outages, verified, logged }: Played): string[] {
  const { failover, interruption, lag } = ledger;
  const rows: [string, string | number][] = [
    ['seconds', seconds],
    ['runs', ledger.runs.size],
    ['events kept', verified.events],
    ['events seen', ledger.eventsSeen],
    ['requests', requests],
    ['reconnects', `${ledger.reconnects}, ${ledger.switches} of them to another node`],
    ['answers', `${ledger.resumes}, ${ledger.resumesElsewhere} of them at another node`],
    ['cancels', `${ledger.cancels}, ${ledger.cancelsElsewhere} of them at another node`],
    ['second reader', `${lag} after the first`],
  ];
  if (outages === undefined) {
    rows.push(
      ['kills', acts.kill],
      ['pauses', acts.pause],
      ['stops', acts.stop],
      ['restarts', acts.starts],
      ['cut connections', `${cuts} by the balancer`],
      ['after a kill', `${failover.kill} to the next token by another process`],
      ['after a pause', `${failover.pause} to the next token by another process`],
      ['after a stop', `${failover.stop} to the next token by another process`],
      ['interrupted', `${interruption} from a kill to the end of a pinned run`],
    );
  } else {
    rows.push(
      ['outages', outages.count],
      ['answered in them', String(outages.answers)],
      ['failed streams', ledger.failedStreams],
      ['ready again', `${outages.returns} after the store`],
    );
  }
  return [
    ...rows.map(([name, value]) => `${name.padEnd(18)}${value}`),
    ...table('how runs ended', verified.outcomes),
    ...table('what was answered while the store was away', outages?.statuses ?? {}),
    ...table('what the nodes logged', Object.fromEntries(logged)),
  ];
}

function table(title: string, counts: Readonly<Record<string, number>>): string[] {
  const rows = Object.entries(counts);
  return rows.length === 0
    ? []
    : [`${title}:`, ...rows.map(([name, count]) => `  ${String(count).padStart(6)}  ${name}`)];
}
