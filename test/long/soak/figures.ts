import type { ChaosResult } from './chaos.ts';
import type { ClusterResult } from './cluster.ts';
import type { Ledger } from './ledger.ts';
import type { Verified } from './verify.ts';

type Row = readonly [string, string | number];

/** The measurements of a test of one server, one per line. */
export const chaosFigures = ({ seconds, acts, ledger, startTimes, verified }: ChaosResult): string[] =>
  lines(verified, [
    ['seconds', seconds],
    ...commonRows(ledger, verified),
    ['kills', acts.kill],
    ['stops', acts.stop],
    ['unanswered', ledger.unanswered],
    ['audits', ledger.audits],
    ['starts', `${startTimes}`],
  ]);

/** The measurements of a test of several nodes, one per line. */
export function clusterFigures({
  seconds,
  acts,
  ledger,
  requests,
  cuts,
  outages,
  clusterFaults,
  verified,
  logged,
}: ClusterResult) {
  const { failover, interruption } = ledger;
  const rows: Row[] = [
    ['seconds', seconds],
    ...commonRows(ledger, verified),
    ['requests', requests],
    ['second reader', `${ledger.lag} after the first`],
  ];
  if (clusterFaults !== undefined)
    rows.push(['failovers', clusterFaults.failovers], ['moves of slots', clusterFaults.moves]);
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
      ['interrupted', `${interruption} from a kill to the end of a run that is not durable`],
    );
  } else {
    rows.push(
      ['outages', outages.count],
      ['responses in them', `${outages.responseTimes}`],
      ['failed streams', ledger.failedStreams],
      ['ready again', `${outages.returnTimes} after the store`],
    );
  }
  return [
    ...lines(verified, rows),
    ...table('responses while the store was away', outages?.statuses ?? {}),
    ...table('log lines of the nodes', Object.fromEntries(logged)),
  ];
}

const commonRows = (ledger: Ledger, { events }: Verified): Row[] => [
  ['runs', ledger.runs.size],
  ['events stored', events],
  ['events received', ledger.eventsReceived],
  ['reconnects', `${ledger.reconnects}, ${ledger.switches} to another node`],
  ['resumes', `${ledger.resumes}, ${ledger.resumesElsewhere} at another node`],
  ['cancels', `${ledger.cancels}, ${ledger.cancelsElsewhere} at another node`],
];

const lines = ({ outcomes }: Verified, rows: readonly Row[]): string[] => [
  ...rows.map(([name, value]) => `${name.padEnd(18)}${value}`),
  ...table('runs by kind and status', outcomes),
];

function table(title: string, counts: Readonly<Record<string, number>>): string[] {
  const rows = Object.entries(counts);
  return rows.length === 0
    ? []
    : [`${title}:`, ...rows.map(([name, count]) => `  ${String(count).padStart(6)}  ${name}`)];
}
