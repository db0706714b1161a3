#!/usr/bin/env bash
# @langchain/langgraph 1.7.3 cannot resume with every reply: null is no input, and an object of hashes is no reply.
#
# Expected: `new Command({ resume: value })` returns any JSON value from `interrupt()`, as it does for false, 0, '' and {}.
# Seen: null, as a form gives for an answer that is left out, throws `EmptyInputError`. An object whose keys are all texts of 32
# hexadecimal digits, such as choices by MD5 hash or by UUID without hyphens, is taken for a map of interrupts by their ids:
# nothing is thrown, the node runs from its start again, and asks its question again.
# So: resume by id, `new Command({ resume: { [interrupt.id]: value } })`, also where only one question is open.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund @langchain/langgraph@1.7.3 @langchain/core@1.4.0
cat > show.mjs <<'JS'
import { Annotation, Command, interrupt, MemorySaver, START, StateGraph } from '@langchain/langgraph';

const State = Annotation.Root({ reply: Annotation() });
const config = { configurable: { thread_id: 't' } };

/** What `interrupt()` returns for a reply. */
async function answer(value, byId) {
  const graph = new StateGraph(State)
    .addNode('ask', () => ({ reply: JSON.stringify(interrupt('Which?')) }))
    .addEdge(START, 'ask')
    .compile({ checkpointer: new MemorySaver() });
  const { __interrupt__: [question] } = await graph.invoke({}, config);
  try {
    const resume = byId ? { [question.id]: value } : value;
    const { reply, __interrupt__: open = [] } = await graph.invoke(new Command({ resume }), config);
    return open.length > 0 ? 'asks again' : reply;
  } catch ({ name }) {
    return name;
  }
}
const hashes = { d41d8cd98f00b204e9800998ecf8427e: true };
for (const value of [false, {}, { a: true }, null, hashes])
  console.log(`${JSON.stringify(value).slice(0, 10)}: ${await answer(value, false)}, by id ${await answer(value, true)}`);
JS
seen=$(timeout 60 node show.mjs | paste -sd ';')
echo "@langchain/langgraph 1.7.3, Node $(node -v): $seen"
[ "$seen" = 'false: false, by id false;{}: {}, by id {};{"a":true}: {"a":true}, by id {"a":true};null: EmptyInputError, by id null;{"d41d8cd9: asks again, by id {"d41d8cd98f00b204e9800998ecf8427e":true}' ]
