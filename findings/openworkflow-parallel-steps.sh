#!/usr/bin/env bash
# openworkflow 0.10.1 does a step again that has ended, or that is at work, where a step beside it fails or a sleep beside it begins.
#
# Expected: a step whose function returns, in a process that goes on, is kept and not done again. A step that is at work is not
# begun a second time beside itself. In @dbos-inc/dbos-sdk 5.3.0, `Promise.all` of the same two steps does the longer one once.
# Seen: a step that fails, and is to be tried again, ends the attempt of the whole workflow. The longer step beside it goes on, its
# result is thrown away, and the next attempt does it again: two payments without a crash. A `sleep` beside a step does the
# same, and the two executions of the step overlap.
# So: await each step before the next step or sleep begins, or catch errors within the steps that run side by side. An effect needs
# a key of its own, by which its receiver knows it again.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund openworkflow@0.10.1 node24@npm:node@24.11.0
cat > show.mjs <<'JS'
import { setTimeout as wait } from 'node:timers/promises';
import { OpenWorkflow } from 'openworkflow';
import { BackendSqlite } from 'openworkflow/sqlite';

const app = new OpenWorkflow({ backend: BackendSqlite.connect('data.db') });
let done = [];
/** A step that takes so long. */
const work = (step, name, time) =>
  step.run({ name }, async () => {
    done.push(`${name} begins`);
    await wait(time);
    done.push(`${name} ends`);
    return name;
  });
let failed = false;
/** A step that fails once, and is tried again. */
const stumble = (step) =>
  step.run({ name: 'mail' }, async () => {
    done.push('mail');
    if (failed) return 'mail';
    failed = true;
    throw new Error('busy');
  });
const workflows = {
  'one after the other': async ({ step }) => [await work(step, 'pay', 300), await stumble(step)],
  'Promise.all': ({ step }) => Promise.all([work(step, 'pay', 300), stumble(step)]),
  'a sleep beside a step': async ({ step }) => {
    const paid = work(step, 'pay', 2_000);
    await step.sleep('pause', '200ms');
    return await paid;
  },
};
const defined = Object.entries(workflows).map(([name, body]) => [name, app.defineWorkflow({ name }, body)]);
const worker = app.newWorker({ concurrency: 2 });
await worker.start();
const seen = [];
for (const [name, workflow] of defined) {
  done = [];
  failed = false;
  const run = await workflow.run({});
  await run.result();
  await wait(500);
  seen.push(`${name}: ${done.join(', ')}`);
}
console.log(seen.join('; '));
process.exit(0);
JS
seen=$(timeout 45 node_modules/node24/bin/node --no-warnings show.mjs)
echo "Node $(node_modules/node24/bin/node -v): $seen"
[ "$seen" = 'one after the other: pay begins, pay ends, mail, mail; Promise.all: pay begins, mail, pay ends, pay begins, mail, pay ends; a sleep beside a step: pay begins, pay begins, pay ends, pay ends' ]
