#!/usr/bin/env bash
# @langchain/langgraph 1.7.3 lists the interrupt of a task that has finished as pending.
#
# Expected: `getState().tasks` has the interrupts that wait for a value, so a program that resumes from a checkpoint asks those.
# Seen: two nodes run side by side, and one of them asks twice. After both first questions have their values, the other node is
# done. The stream's `__interrupt__` has the second question alone, and the tasks of the state still have the one that is
# answered, with the result of its node beside it.
# So: take the open interrupts from the stream, or leave out tasks of the state that have a result.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund @langchain/langgraph@1.7.3 @langchain/core@1.4.0
cat > show.cjs <<'JS'
const { Annotation, Command, interrupt, MemorySaver, START, StateGraph } = require('@langchain/langgraph');

const State = Annotation.Root({ said: Annotation({ reducer: (a, b) => a.concat(b), default: () => [] }) });
const graph = new StateGraph(State)
  .addNode('two', () => ({ said: [interrupt('first') + interrupt('second')] }))
  .addNode('one', () => ({ said: [interrupt('only')] }))
  .addEdge(START, 'two')
  .addEdge(START, 'one')
  .compile({ checkpointer: new MemorySaver() });
const config = { configurable: { thread_id: 't' } };

async function asked(input) {
  const open = [];
  for await (const chunk of await graph.stream(input, { ...config, streamMode: 'values' }))
    if (chunk.__interrupt__) open.push(...chunk.__interrupt__);
  return open;
}

(async () => {
  const open = await asked({ said: [] });
  const values = Object.fromEntries(open.map(({ id }) => [id, 'x']));
  const next = await asked(new Command({ resume: values }));
  const { tasks } = await graph.getState(config);
  const listed = tasks.flatMap(({ interrupts }) => interrupts.map(({ value }) => value));
  console.log(`stream: ${next.map(({ value }) => value)}; state: ${listed.sort()}`);
})();
JS
seen=$(timeout 60 node show.cjs)
echo "@langchain/langgraph 1.7.3, Node $(node -v): $seen"
[ "$seen" = 'stream: second; state: only,second' ]
