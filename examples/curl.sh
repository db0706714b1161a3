#!/usr/bin/env bash
# Every call of the protocol with curl (and node to read ids from JSON).
# BASE=http://127.0.0.1:8000 examples/curl.sh   needs the agents echo and approve
set -euo pipefail
BASE=${BASE:-http://127.0.0.1:8000}

title() { printf '\n\n== %s\n' "$*"; }
# An error ends the script and prints its body, which names the problem.
call() { curl -sS --fail-with-body "$@"; }
post() { call -H 'Content-Type: application/json' "$BASE$1" -d "$2" "${@:3}"; }
# Picks a field of the JSON on stdin: `field run_id`.
field() { node -pe "JSON.parse(fs.readFileSync(0, 'utf8')).$1"; }
# Follows a run, and returns when it is final.
follow() { call -N -H 'Accept: text/event-stream' "$BASE/runs/$1/events" "${@:2}"; }
# The body of a request to run an agent: request AGENT MODE TEXT [SESSION]
request() {
  printf '{"agent_name":"%s","mode":"%s","input":[{"role":"user","parts":[{"content":"%s"}]}]%s}' \
    "$1" "$2" "$3" "${4:+,\"session_id\":\"$4\"}"
}

title 'Liveness check'
call "$BASE/ping"

title 'List the agents'
call "$BASE/agents?limit=100" | field 'agents.map(({ name, description }) => `${name}: ${description}`).join("\n")'

title 'Run and wait for the output (sync)'
post /runs "$(request echo sync 'Hello')"

title 'Run and poll (async)'
run=$(post /runs "$(request echo async 'Take your time')" | field run_id)
while [[ $(call "$BASE/runs/$run" | field status) =~ ^(created|in-progress)$ ]]; do sleep 0.2; done
call "$BASE/runs/$run"

title 'Run and stream (stream)'
post /runs "$(request echo stream 'Word by word')" -N

title 'Resume the stream after event 3'
follow "$run" -H 'Last-Event-ID: 3'

title 'A run that awaits a reply'
run=$(post /runs "$(request approve sync 'paint the fence')" | field run_id)
call "$BASE/runs/$run" | field 'await_request.message.parts[0].content'

title 'Reply to it'
post "/runs/$run" '{"mode":"sync","await_resume":{"type":"message","message":{"role":"user","parts":[{"content":"yes"}]}}}'

title 'Cancel a run'
run=$(post /runs "$(request approve sync 'sell the house')" | field run_id)
call -X POST "$BASE/runs/$run/cancel" | field status
follow "$run" >/dev/null # ends with the run
call "$BASE/runs/$run" | field status

title 'A session with two runs'
session=$(post /runs "$(request echo sync 'First')" | field session_id)
post /runs "$(request echo sync 'Second' "$session")" >/dev/null
call "$BASE/sessions/$session"
printf '\nIts first message:\n'
call "$(call "$BASE/sessions/$session" | field 'history[0]')"
echo
