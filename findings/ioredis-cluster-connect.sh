#!/usr/bin/env bash
# ioredis 6.0.0: `connect()` of a Cluster stays pending for ever where the cluster was down at first, also when it is ready.
#
# Expected: the promise resolves when the client is ready, or rejects when an attempt has failed, as that of `Redis` does.
# Seen: while a slot is missing (`cluster_state:fail`, as during a failover), the client tries again and again. When the cluster
# is whole, it emits `ready` and answers commands, but the promise of `connect()` settles neither before nor after that.
# So: wait for the event `ready` with a time limit of your own, or limit `connect()` and begin again with a new client. A
# program that awaits only the promise hangs, or ends with code 0 when nothing else keeps its event loop alive.
#
# Needs redis-server and redis-cli 7.0 or newer.
set -euo pipefail
folder=$(mktemp -d)
port=$((20000 + RANDOM % 10000))
cd "$folder"
redis-server --port "$port" --bind 127.0.0.1 --cluster-enabled yes --cluster-port $((port + 10000)) --cluster-announce-ip 127.0.0.1 --save '' --dir "$folder" >server.log &
server=$!
trap 'kill "$server"; wait "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT
npm init -y >/dev/null
npm install --silent --no-audit --no-fund ioredis@6.0.0
until redis-cli -p "$port" ping >/dev/null 2>&1; do sleep 0.1; done
redis-cli -p "$port" cluster addslotsrange 0 100 >/dev/null
cat > show.cjs <<'JS'
const { execFileSync } = require('node:child_process');
const { Cluster } = require('ioredis');
const port = process.argv[2];
const cli = (...words) => String(execFileSync('redis-cli', ['-p', port, ...words]));
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

(async () => {
  const cluster = new Cluster([{ host: '127.0.0.1', port: Number(port) }], { lazyConnect: true });
  cluster.on('error', () => {});
  let promise = 'pending';
  cluster.connect().then(
    () => (promise = 'resolved'),
    () => (promise = 'rejected'),
  );
  const ready = new Promise((resolve) => cluster.once('ready', resolve));
  await pause(3_000);
  const before = promise;
  cli('cluster', 'addslotsrange', '101', '16383');
  await ready;
  const answer = await cluster.set('a', '1');
  await pause(1_000);
  console.log(`while it is down: ${before}; when it is ready and has answered ${answer}: ${promise}`);
  cluster.disconnect();
})();
JS
seen=$(timeout 20 node show.cjs "$port" || true)
echo "ioredis 6.0.0, $(redis-server --version | cut -d' ' -f3), Node $(node -v): $seen"
[ "$seen" = 'while it is down: pending; when it is ready and has answered OK: pending' ]
