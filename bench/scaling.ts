/**
 * Many nodes with one store: `npm run bench:scaling`, some five minutes, or `-- --quick` to see whether it works, or parts:
 * `-- --only starts,hints`. Prints the tables and puts them into SCALING.md; with `--quick` or `--dry` it only prints.
 * The stores are those of REDIS_URL and DATABASE_URL, or on the usual ports, or are started for this.
 */
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from './contestant.ts';
import { commit, machine } from './machine.ts';
import { temporaryFolder } from './owned.ts';
import { sectionOf, write } from './report.ts';
import { failoverOf } from './scaling/failover.ts';
import { grounds } from './scaling/ground.ts';
import { hintsOf } from './scaling/hints.ts';
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
const places = await grounds();
const scale = values.quick ? quick : whole;
const works = [
  startsOf(places, scale),
  ...streamsOf(places, scale),
  hintsOf(places, scale),
  runsOf(places, scale),
  failoverOf(places, scale),
];
const head = machine(
  `${places.map(({ settings }) => settings).join('; ')}. Nodes, load and the stores’ servers share the cores.`,
  [],
);
build();
try {
  for (const work of works.filter(({ group }) => values.only?.split(',').includes(group) ?? true)) {
    process.stderr.write(`${work.name} …\n`);
    const rows = new Map([...(await work.find(folder))].map(([id, figures]) => [id, [figures]]));
    const at = `${commit()}, ${new Date().toISOString().slice(0, 10)}`;
    const told = { goals: [], nameOf: (id: string) => id, rounds: scale.rounds, at };
    const section = sectionOf({ work, rows, out: new Map() }, told);
    console.log(`\n${section}`);
    const order = works.map(({ name }) => name);
    if (!values.quick && !values.dry) write(values.out, new Map([[work.name, section]]), order, head);
  }
} finally {
  for (const place of places) await place.remove();
}
process.exit();
