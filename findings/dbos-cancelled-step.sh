#!/usr/bin/env bash
# @dbos-inc/dbos-sdk 5.3.0 does a step again that ended after its workflow was cancelled, when the workflow is resumed.
#
# Expected: a cancel does not break a step off, but ends the workflow where its next step would begin, and a resume goes on after the
# last step that was completed. So the step that was at work ends, is kept, and is not done again.
# Seen: the step ends, and its value is thrown away, as the workflow is no longer owned by its execution. The list of steps does not
# have it, and the resumed workflow does it again: a payment is made twice, though no process died. The `catch` of the
# cancelled workflow runs, and can do no step, so what it would undo stays done.
# So: an effect needs a key, such as `DBOS.workflowID` and the name of the step, by which its receiver knows it again, also where
# crashes are no concern. A workflow that may be resumed is stopped by a message that it reads between its steps.
#
# Needs initdb, pg_ctl and postgres of PostgreSQL (tried with 15). Root runs them as the user postgres.
set -euo pipefail
folder=$(mktemp -d)
port=$((20000 + RANDOM % 10000))
PATH=$PATH:$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1 || true)
cd "$folder"
mkdir data
as=()
if [ "$(id -u)" = 0 ]; then
  as=(runuser -u postgres -- env "PATH=$PATH")
  chmod 755 "$folder"
  chown postgres data
fi
trap '"${as[@]}" pg_ctl -D "$folder/data" -m immediate stop >/dev/null 2>&1 || true; rm -rf "$folder"' EXIT
"${as[@]}" initdb -D "$folder/data" -U postgres -A trust >/dev/null
settings="-p $port -k $folder/data -c listen_addresses=127.0.0.1 -c fsync=off"
"${as[@]}" pg_ctl -D "$folder/data" -o "$settings" -l "$folder/data/log" -w start >/dev/null
npm init -y >/dev/null
npm install --silent --no-audit --no-fund @dbos-inc/dbos-sdk@5.3.0
cat > show.mjs <<'JS'
import { EventEmitter, once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { DBOS } from '@dbos-inc/dbos-sdk';

const systemDatabaseUrl = `postgresql://postgres@127.0.0.1:${process.argv[2]}/dbos`;
DBOS.setConfig({ name: 'show', systemDatabaseUrl, logLevel: 'critical', runAdminServer: false });
const events = new EventEmitter();
let done = [];
const step = (name, time) =>
  DBOS.runStep(
    async () => {
      events.emit(name);
      await wait(time);
      done.push(name);
    },
    { name },
  );
const undo = () => step('undo', 0).catch(() => done.push('undo is refused'));
const workflow = DBOS.registerWorkflow(
  async () => {
    try {
      await step('look', 0);
      await step('pay', 700);
      await step('mail', 0);
    } catch (error) {
      await undo();
      throw error;
    } finally {
      events.emit('end');
    }
  },
  { name: 'order' },
);
await DBOS.launch();
const seen = [];

const whole = await DBOS.startWorkflow(workflow)();
await whole.getResult();
seen.push(`whole: ${done.join(', ')}`);

done = [];
const paying = once(events, 'pay');
const order = await DBOS.startWorkflow(workflow)();
await paying;
const ended = once(events, 'end');
await DBOS.cancelWorkflow(order.workflowID);
await ended;
const steps = await DBOS.listWorkflowSteps(order.workflowID);
seen.push(`cancelled: ${done.join(', ')} (kept: ${steps.map(({ name }) => name).join(', ')})`);

done = [];
const resumed = await DBOS.resumeWorkflow(order.workflowID);
await resumed.getResult();
seen.push(`resumed: ${done.join(', ')}`);
console.log(seen.join('; '));
process.exit(0);
JS
seen=$(timeout 40 node --no-warnings show.mjs "$port" 2>errors.log | tail -n 1 || cat errors.log)
echo "Node $(node -v), $("${as[@]}" postgres --version): $seen"
[ "$seen" = 'whole: look, pay, mail; cancelled: look, pay, undo is refused (kept: look); resumed: pay, mail' ]
