/**
 * Measures several nodes with one store, and DBOS beside them: `npm ci --prefix bench`, then `npm run bench:scaling`,
 * about ten minutes. `-- --quick` only checks that the bench works; `-- --only starts,notifications` selects workloads.
 * Prints the tables and writes them into SCALING.md; with `--quick` or `--dry` it only prints. The bench uses the
 * servers that REDIS_URL and DATABASE_URL name, or servers on the usual ports, or starts its own.
 */
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { temporaryFolder } from './cleanup.ts';
import { build } from './contestant.ts';
import { commit, machine } from './machine.ts';
import { sectionOf, write } from './report.ts';
import { backends as openBackends } from './scaling/backends.ts';
import { failoverOf } from './scaling/failover.ts';
import { notificationsOf } from './scaling/notifications.ts';
import { runsOf } from './scaling/runs.ts';
import { quick, whole } from './scaling/scale.ts';
import { startsOf } from './scaling/starts.ts';
import { streamsOf } from './scaling/streams.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    quick: { type: 'boolean', default: false },
    dry: { type: 'boolean', default: false },
    out: { type: 'string', default: relative('.', fileURLToPath(new URL('SCALING.md', import.meta.url))) },
  },
});

const folder = temporaryFolder();
const backends = await openBackends();
const scale = values.quick ? quick : whole;
const works = [
  startsOf(backends, scale),
  ...streamsOf(backends, scale),
  notificationsOf(backends, scale),
  runsOf(backends, scale),
  failoverOf(backends, scale),
];
const head = machine(
  `${backends.map(({ settings }) => settings).join('; ')}. Nodes, load and the stores’ servers share the cores.`,
  [],
);
build();
try {
  for (const work of works.filter(({ group }) => values.only?.split(',').includes(group) ?? true)) {
    process.stderr.write(`${work.name} …\n`);
    const rows = new Map([...(await work.find(folder))].map(([id, figures]) => [id, [figures]]));
    const at = `${commit()}, ${new Date().toISOString().slice(0, 10)}`;
    const options = { goals: [], nameOf: (id: string) => id, rounds: scale.rounds, at };
    const section = sectionOf({ work, rows, excluded: new Map() }, options);
    console.log(`\n${section}`);
    const order = works.map(({ name }) => name);
    if (!values.quick && !values.dry) write(values.out, new Map([[work.name, section]]), order, head);
  }
} finally {
  for (const backend of backends) await backend.remove();
}
process.exit();
