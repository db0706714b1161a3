#!/usr/bin/env bash
# @ag-ui/langgraph 0.0.43 goes on after the RUN_ERROR of a graph that failed, and @ag-ui/client 1.0.0 hides the error behind that.
#
# Expected: RUN_ERROR is the last event of a run. `runAgent` then resolves, and `onRunErrorEvent` has the message of the graph, as
# with any other agent that ends so.
# Seen: after RUN_ERROR the LangGraphAgent sends STEP_FINISHED, two snapshots and RUN_FINISHED, as after a run that went well.
# The client checks the order of events, and refuses the first of them: `runAgent` rejects, and `onRunFailed` has the text "Cannot
# send event type 'STEP_FINISHED': The run has already errored". A page that shows what `runAgent` rejects with shows that to
# its user. A server that passes the events on by HTTP has the same text in each page, and logs a run that has finished.
# So: take the message in `onRunErrorEvent`, and ignore the rejection after it; or end the events at RUN_ERROR with
# `takeWhile(({ type }) => type !== 'RUN_ERROR', true)` of RxJS.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund --legacy-peer-deps @ag-ui/langgraph@0.0.43 @ag-ui/client@1.0.0 @ag-ui/core@1.0.0 rxjs@7.8.1
cat > show.mjs <<'JS'
import { once } from 'node:events';
import { createServer } from 'node:http';
import { AbstractAgent } from '@ag-ui/client';
import { LangGraphAgent } from '@ag-ui/langgraph';
import { from, takeWhile } from 'rxjs';

const threadId = '11111111-1111-4111-8111-111111111111';
/** What LangGraph answers, by the end of the path. */
const answers = {
  '/assistants/search': [{ assistant_id: 'assistant', graph_id: 'graph', config: {}, metadata: {} }],
  '/schemas': { graph_id: 'graph', input_schema: {}, output_schema: {}, context_schema: {}, config_schema: {} },
  '/graph': { nodes: [{ id: '__start__' }, { id: 'node' }, { id: '__end__' }], edges: [] },
  '/state': { values: { messages: [] }, next: [], tasks: [], metadata: {}, checkpoint: {} },
};
const server = createServer((request, response) => {
  const { pathname } = new URL(request.url, 'http://server');
  if (pathname.endsWith('/runs/stream')) {
    const send = (event, data) => response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    const metadata = { langgraph_node: 'node', 'emit-messages': true };
    const chunk = { id: 'message', content: 'Half', tool_call_chunks: [], response_metadata: {} };
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    send('metadata', { run_id: 'run' });
    send('events', { event: 'on_chat_model_stream', run_id: 'run', name: 'model', metadata, data: { chunk } });
    send('error', { error: 'Error', message: 'The model is overloaded' });
    return response.end();
  }
  const [, answer] = Object.entries(answers).find(([end]) => pathname.endsWith(end)) ?? [];
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify(answer ?? { thread_id: threadId, status: 'idle', metadata: {} }));
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');

const graph = { deploymentUrl: `http://127.0.0.1:${server.address().port}`, graphId: 'graph', threadId };
class PlainAgent extends AbstractAgent {
  run({ threadId, runId }) {
    return from([
      { type: 'RUN_STARTED', threadId, runId },
      { type: 'RUN_ERROR', message: 'The model is overloaded' },
    ]);
  }
}
class CutAgent extends LangGraphAgent {
  run(input) {
    return super.run(input).pipe(takeWhile(({ type }) => type !== 'RUN_ERROR', true));
  }
}
const agents = {
  'another agent': new PlainAgent({ threadId }),
  LangGraphAgent: new LangGraphAgent(graph),
  'LangGraphAgent, takeWhile': new CutAgent(graph),
};
// The client logs each failed run.
console.error = () => {};
for (const [name, agent] of Object.entries(agents)) {
  agent.messages = [{ id: '1', role: 'user', content: 'Hello' }];
  const seen = [];
  const subscriber = {
    onRunErrorEvent: ({ event }) => void seen.push(`onRunErrorEvent "${event.message}"`),
    onRunFailed: ({ error }) => void seen.push(`onRunFailed "${error.message}"`),
  };
  await agent.runAgent({}, subscriber).then(() => seen.push('resolves'), () => seen.push('rejects'));
  console.log(`${name}: ${seen.join(', ')}`);
}
const types = [];
const input = { threadId, runId: 'run', messages: [], tools: [], context: [], state: {}, forwardedProps: {} };
await new LangGraphAgent(graph).run(input).forEach(({ type }) => types.push(type));
console.log(`after RUN_ERROR: ${types.slice(types.indexOf('RUN_ERROR') + 1)}`);
process.exit(0);
JS
seen=$(timeout 40 node show.mjs 2>/dev/null)
echo "Node $(node -v)"
echo "$seen"
[ "$seen" = "another agent: onRunErrorEvent \"The model is overloaded\", resolves
LangGraphAgent: onRunErrorEvent \"The model is overloaded\", onRunFailed \"Cannot send event type 'STEP_FINISHED': The run has already errored with 'RUN_ERROR'. No further events can be sent.\", rejects
LangGraphAgent, takeWhile: onRunErrorEvent \"The model is overloaded\", resolves
after RUN_ERROR: STEP_FINISHED,STATE_SNAPSHOT,MESSAGES_SNAPSHOT,RUN_FINISHED" ]
