#!/usr/bin/env bash
# `nohup` does not keep a Node process: SIGHUP ends it.
#
# Expected: nohup sets SIGHUP to be ignored, and programs inherit that, as `nohup sleep` does.
# Seen: Node 20, 22 and 24 set all signals back to their defaults when they start, so that the end of a terminal ends them.
# A listener for SIGHUP is the only protection.
# So: a server that people start with nohup needs such a listener; one that stops at SIGHUP stops under nohup, too.
set -uo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund node20@npm:node@20.19.0 node22@npm:node@22.12.0 node24@npm:node@24.11.0 || exit 1

# Starts a command with nohup, sends SIGHUP when it runs, and prints whether it was ended.
hang_up() {
  nohup "$@" > out 2>/dev/null < /dev/null &
  local pid=$!
  until [ -s out ]; do sleep 0.1; done
  kill -HUP "$pid"
  wait "$pid"
  [ $? -eq 129 ] && echo ended || echo kept
}
seen="sh: $(hang_up sh -c 'echo up; exec sleep 2' 2>/dev/null)"
for version in 20 22 24; do
  : > out
  node=$(echo "$folder"/node_modules/node$version/bin/node)
  seen="$seen; Node $version: $(hang_up "$node" -e 'console.log("up"); setTimeout(() => {}, 2000)' 2>/dev/null)"
done
echo "$seen"
[ "$seen" = 'sh: kept; Node 20: ended; Node 22: ended; Node 24: ended' ]
