import fc from 'fast-check';
import { accumulateResponse } from 'openai/lib/responses/ResponseAccumulator';
import type { Response as OpenAiResponse, ResponseStreamEvent } from 'openai/resources/responses/responses';
import { describe, expect, it } from 'vitest';
import { fold } from '../../src/core/fold.ts';
import { runEventOf } from '../../src/core/recognize.ts';
import type { AgentRequest } from '../../src/core/request.ts';
import { sessionIdFor } from '../../src/engine/ids.ts';
import { frame } from '../../src/http/sse/frames.ts';
import type { Event, Run } from '../../src/index.ts';
import { a2aFrames } from '../../src/protocols/a2a/projection.ts';
import { agUiFrames } from '../../src/protocols/ag-ui/projection.ts';
import { offsetAfter } from '../../src/protocols/durable-streams/request.ts';
import { olderVersions } from '../../src/protocols/mcp/client.ts';
import { type Call, eventIds } from '../../src/protocols/mcp/event-ids.ts';
import { mcpFrames } from '../../src/protocols/mcp/projection.ts';
import { echoOf } from '../../src/protocols/openai/response-object.ts';
import { responsesProjection } from '../../src/protocols/openai/responses-projection.ts';
import { extension } from '../../src/schema/a2a-extension.ts';
import { echo } from '../support/agents.ts';
import { busyLogs } from '../support/logs.ts';
import { SharedStore } from '../support/nodes.ts';
import { serveAll } from '../support/serve.ts';
import { turn } from '../support/turn.ts';
import { type AnyTask, foldFrame, joined, TaskList } from './a2a/shapes.ts';
import { framesOf } from './continues.ts';
import { headersOf, metaOf, request, version } from './mcp/modern.ts';
import { idle, RecordedRun, until } from './recorded-runs.ts';

// `FC_RUNS=2000 npx vitest run test/protocols/open-runs` tries more sessions. Chats of the AI SDK have the same test in
// `transcripts.test.ts`. Chat Completions has no request that resumes a stream.
const numRuns = Number(process.env.FC_RUNS ?? 12);

const store = new SharedStore();
const protocols = ['openai', 'a2a', 'mcp', 'ag-ui', 'durable-streams'] as const;
const served = await serveAll([echo], { store, dispatcher: idle, protocols, docs: false, playground: false });

/** The events of an SSE body so far, each as one text. */
const blocksIn = (text: string): string[] =>
  text
    .split('\n\n')
    .slice(0, -1)
    .map((block) => block.replace(/^retry: \d+\n?/, ''))
    .filter((block) => /^data: ?./m.test(block));
const idIn = (block = ''): string | undefined => /^id: (.*)$/m.exec(block)?.[1];
const dataIn = (block: string) => JSON.parse(/^data: ([^\n]*)/m.exec(block)?.[1] ?? 'null');

/** How a protocol shows the runs of a session to a client that left and comes back. */
interface Form {
  readonly request?: (conversation: string) => AgentRequest;
  /** What a client has that has read the stream of a log and never left. */
  readonly streamOf: (run: RecordedRun, log: readonly string[], conversation: string) => string[];
  /** Opens the stream after what the client has, which is a part of `known`; undefined where that has nothing to open. */
  readonly open: (run: RecordedRun, had: readonly string[], known: readonly string[]) => Promise<Response> | undefined;
  /** What a body so far gives to the client. Default: its Server-Sent Events. */
  readonly taken?: (body: string) => string[];
  /** Whether the client begins anew, with what the stream gives it first. */
  readonly begins?: boolean;
  /** What the client has after its frames. Default: the frames. */
  readonly told?: (blocks: readonly string[]) => unknown;
  /** Whether a client that has the end of a turn may get its last frame again. */
  readonly repeatsEnd?: boolean;
  /** Checks what a client loads without a stream: the same as a client has that never left. */
  readonly loaded?: (runs: readonly RecordedRun[], conversation: string) => Promise<void>;
}

const eventStream = { accept: 'text/event-stream' };
const lastEventId = (id: string | undefined): Record<string, string> =>
  id === undefined ? {} : { 'last-event-id': id };

function runOf(log: readonly string[]): Run {
  const [first = '{}', ...later] = log;
  const run: Run = structuredClone(JSON.parse(first).run);
  return later.reduce((before, line) => fold(before, JSON.parse(line) as Event), run);
}

const acp: Form = {
  streamOf: (_, log) => log.map((line, index) => frame(index + 1, line).trimEnd()),
  open: ({ run_id }, had) => served.get(`/runs/${run_id}/events`, { ...eventStream, ...lastEventId(idIn(had.at(-1))) }),
  loaded: async (runs) => {
    const { runs: listed } = await (await served.get(`/runs?session_id=${runs[0]?.session_id}`)).json();
    expect(Object.fromEntries(listed.map(({ run_id, status }: Run) => [run_id, status]))).toEqual(
      Object.fromEntries(runs.map(({ run_id, status }) => [run_id, status])),
    );
    for (const { run_id, stored } of runs) {
      const { input: _, ...run } = await (await served.get(`/runs/${run_id}`)).json();
      expect(run).toEqual(JSON.parse(JSON.stringify(runOf(stored))));
      const { events } = await (await served.get(`/runs/${run_id}/events`)).json();
      expect(events).toEqual(stored.map((line) => JSON.parse(line)));
    }
  },
};

/** The events that a stream has given together with the offset after them. */
const withOffsets = (body: string): string[] =>
  [...body.matchAll(/^data: \[(.*)\]\n\nevent: control\ndata: \{"streamNextOffset":"(\d+)"[^\n]*\n\n/gm)].map(
    ([, line, offset]) => `${offset} ${line}`,
  );
const offset = (had: readonly string[]): string => (had.length === 0 ? '-1' : offsetAfter(had.length));
const durableStreams: Form = {
  streamOf: (_, log) => log.map((line, index) => `${offsetAfter(index + 1)} ${line}`),
  open: ({ run_id }, had) => served.get(`/runs/${run_id}/stream?live=sse&offset=${offset(had)}`),
  taken: withOffsets,
};

const longPoll: Form = {
  streamOf: (_, log) => log.map((line) => JSON.stringify(JSON.parse(line))),
  open: ({ run_id }, had) => served.get(`/runs/${run_id}/stream?live=long-poll&offset=${offset(had)}`),
  // A body that is not whole gives nothing.
  taken: (body) => (body.endsWith(']') ? JSON.parse(body).map((event: object) => JSON.stringify(event)) : []),
  loaded: async (runs) => {
    for (const { run_id, stored } of runs) {
      const events = await (await served.get(`/runs/${run_id}/stream`)).json();
      expect(events).toEqual(stored.map((line) => JSON.parse(line)));
    }
  },
};

/** What a client shows of a task. Texts that a file stands between are two in a task that is read at once, which has no steps. */
const shown = (task: AnyTask | undefined): object => ({
  id: task?.id,
  artifacts: task?.artifacts?.map((one) => ({ ...one, parts: joined([], one.parts) })) ?? [],
  state: task?.status.state,
  timestamp: task?.status.timestamp,
});
const a2aHeaders = { 'a2a-version': '1.0', 'a2a-extensions': extension.cursor };
const a2a: Form = {
  request: (conversation) => ({ protocol: 'a2a', conversation }),
  streamOf: ({ run_id, messages }, log, contextId) =>
    blocksIn(framesOf(a2aFrames({ taskId: run_id, contextId }, messages, { cursors: true }), log).join('')),
  open: ({ run_id }, had) =>
    served.get(`/a2a/echo/tasks/${run_id}:subscribe`, { ...a2aHeaders, ...lastEventId(idIn(had.at(-1)) ?? '0') }),
  loaded: async (runs, contextId) => {
    const query = `contextId=${encodeURIComponent(contextId)}&includeArtifacts=true`;
    const { tasks } = TaskList.of(await (await served.get(`/a2a/echo/tasks?${query}`, a2aHeaders)).json());
    expect(tasks.map(({ id }) => id).sort()).toEqual(runs.map(({ run_id }) => run_id).sort());
    for (const run of runs) {
      let seen: AnyTask | undefined;
      for (const block of a2a.streamOf(run, run.stored, contextId)) seen = foldFrame(seen, dataIn(block));
      expect(shown(tasks.find(({ id }) => id === run.run_id))).toEqual(shown(seen));
    }
  },
};

/** Subscribes without a cursor: the client gets the task, and the rest after it. */
const a2aSnapshot: Form = {
  ...a2a,
  begins: true,
  open: async ({ run_id, log }) => {
    const response = await served.get(`/a2a/echo/tasks/${run_id}:subscribe`, a2aHeaders);
    if (response.status === 200) return response;
    // It is final.
    const task = await (await served.get(`/a2a/echo/tasks/${run_id}`, a2aHeaders)).json();
    return new Response(`data: ${JSON.stringify({ task })}\nid: ${log.length}\n\n`);
  },
  told: (blocks) => {
    const task = blocks.reduce<AnyTask | undefined>((seen, block) => foldFrame(seen, dataIn(block)), undefined);
    return shown(task);
  },
};

/** The state of a request is signed, and so another one each time. */
const withoutState = (block: string): string => block.replace(/"requestState":"[^"]*"/, '"requestState":""');
const mcp = (modern: boolean): Form => {
  const call: Call = { id: 'a "call"', token: 7, modern, asks: true, everyToken: true };
  const protocolVersion = modern ? version : olderVersions[0];
  const headers = { ...eventStream, 'mcp-protocol-version': protocolVersion };
  return {
    streamOf: ({ run_id }, log) => {
      const more = { run_id, begins: true, outputSchema: undefined, stateOf: () => '' };
      return blocksIn(framesOf(mcpFrames({ ...call, ...more }), log).join(''));
    },
    open: ({ run_id }, had) =>
      served.get('/mcp', { ...headers, ...lastEventId(idIn(had.at(-1)) ?? `${eventIds(run_id, call)}0`) }),
    // A stream begins with an event that has only an id.
    taken: (body) => blocksIn(body).map(withoutState),
  };
};
const modernMcp: Form = {
  ...mcp(true),
  loaded: async (runs) => {
    const capabilities = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
    for (const run of runs) {
      const body = request('tasks/get', { taskId: run.run_id, _meta: metaOf(capabilities) });
      const { result: task } = await (await served.post('/mcp', body, headersOf('tasks/get', run.run_id))).json();
      const last = mcp(true).streamOf(run, run.stored, '').at(-1);
      const { result } = last === undefined ? {} : dataIn(last);
      if (run.status === 'completed' || run.status === 'failed') expect(task.result).toEqual(result);
      if (run.status === 'awaiting') expect(task.inputRequests).toEqual(runAsks(run));
      expect(task.taskId).toBe(run.run_id);
    }
  },
};
/** What the client was asked last; the agent may have gone on since. */
const runAsks = (run: RecordedRun): object =>
  mcp(true)
    .streamOf(run, run.stored, '')
    .flatMap((block) => dataIn(block).result?.inputRequests ?? [])
    .at(-1);

/** The last frame of a response, which is no event. */
const done = 'data: [DONE]';
const echoed = (conversation: string) => ({ protocol: 'openai', conversation });
const responsesIn = (blocks: readonly string[]): OpenAiResponse[] => {
  const responses: OpenAiResponse[] = [];
  for (const block of blocks) {
    if (block === done) continue;
    const event: ResponseStreamEvent = dataIn(block);
    responses.push(accumulateResponse(event, event.type === 'response.created' ? undefined : responses.pop()));
  }
  return responses;
};
const responses: Form = {
  request: echoed,
  streamOf: (_, log, conversation) =>
    blocksIn(framesOf(responsesProjection(echoOf(echoed(conversation))), log).join('')),
  open: (_, had, known) => {
    const isOver = had.length === known.length && known.at(-1) === done;
    const from = known.findLastIndex((block, at) => at <= had.length && block.startsWith('event: response.created\n'));
    // The next response has not begun.
    if (isOver || from < 0) return undefined;
    const { id } = dataIn(known[from] ?? '').response;
    const last = had.slice(from).findLast((block) => block !== done);
    const query = last === undefined ? '' : `&starting_after=${dataIn(last).sequence_number}`;
    return served.get(`/v1/responses/${id}?stream=true${query}`);
  },
  loaded: async (runs, conversation) => {
    for (const run of runs) {
      const seen = responsesIn(responses.streamOf(run, run.stored, conversation));
      const resumed = run.stored.map((line) => JSON.parse(line)).flatMap(({ run }) => run?.await_resume ?? []);
      for (const [index, { output_text: _, ...response }] of seen.entries()) {
        const read = await (await served.get(`/v1/responses/${response.id}`)).json();
        // An item that is open has no end yet.
        if (response.status === 'in_progress') expect([read.id, read.status]).toEqual([response.id, 'in_progress']);
        else expect(read).toEqual(response);
        const { data } = await (await served.get(`/v1/responses/${response.id}/input_items`)).json();
        const { content, output } = data[0];
        const said = index === 0 ? run.messages[0] : resumed[index - 1]?.message;
        expect(content ?? output).toEqual([{ type: 'input_text', text: said?.parts[0]?.content }]);
      }
    }
  },
};

/** What an agent says while it awaits comes with the next turn, which begins with the reply. */
function withoutRest(log: readonly string[]): readonly string[] {
  const end = log.findLastIndex((line) => runEventOf(line) !== undefined) + 1;
  return runEventOf(log[end - 1] ?? '') === 'awaiting' ? log.slice(0, end) : log;
}
const agUi: Form = {
  request: (conversation) => ({ protocol: 'ag-ui', conversation, metadata: { protocolVersion: '0.1.0' } }),
  streamOf: ({ run_id }, log, threadId) => {
    const frames = framesOf(agUiFrames({ threadId, runId: run_id, modern: false, tools: [] }), withoutRest(log));
    return blocksIn(frames.join(''));
  },
  open: ({ run_id }, had) => served.get(`/ag-ui/echo?runId=${run_id}&offset=${idIn(had.at(-1)) ?? '-1'}`),
  repeatsEnd: true,
};

const forms: [string, Form][] = [
  ['ACP', acp],
  ['Durable Streams', durableStreams],
  ['Durable Streams with long polls', longPoll],
  ['A2A', a2a],
  ['A2A without a cursor', a2aSnapshot],
  ['MCP', modernMcp],
  ['MCP of the older era', mcp(false)],
  ['Responses', responses],
  ['AG-UI', agUi],
];

const runs = fc.array(
  fc.record({
    log: busyLogs,
    /** How much of the log there is when the client comes back, and in the end: then the run is under way, or waits. */
    stored: fc.nat(),
    last: fc.option(fc.nat()),
    /** How much of what there is the client has. */
    has: fc.nat(),
  }),
  { minLength: 1, maxLength: 4 },
);

/** A client that has left a run. */
interface Left {
  readonly run: RecordedRun;
  /** Its frames. */
  readonly had: readonly string[];
  /** Those that there are when it comes back, and in the end. */
  readonly now: readonly string[];
  readonly all: readonly string[];
}

/** Whether a client has the last frame; one that has begun anew may have been given all that there is at once. */
function hasEnd(blocks: readonly string[], all: readonly string[], begins: boolean): boolean {
  const end = all.at(-1) ?? '';
  const count = (some: readonly string[]) => some.filter((block) => block === end).length;
  if (count(blocks) >= count(all)) return true;
  const [given = 0, last = 0] = [blocks[0], end].map((block) => Number.parseInt(idIn(block) ?? '0', 10));
  return begins && given >= last;
}

/** The runs go on side by side, each by one event at a time. */
async function goOn(runs: readonly RecordedRun[]): Promise<void> {
  while (runs.some(({ stored, log }) => stored.length < log.length)) {
    await turn();
    for (const run of runs) await run.store(Math.min(run.stored.length + 1, run.log.length));
  }
}

describe.each(forms)('clients of %s that come back to several runs', (name, form) => {
  const { request: requestOf, taken = blocksIn, told = (blocks) => blocks, begins = false, loaded } = form;

  /** Reads on, over as many streams as it takes, until the client has the last frame. `whole`: when all events are stored. */
  async function readOn({ run, had, now, all }: Left, whole: Promise<void>): Promise<readonly string[]> {
    const blocks = [...had];
    const isEnough = (more: readonly string[]) =>
      blocks.length + more.length >= all.length || hasEnd([...blocks, ...more], all, begins);
    for (let known = now; !isEnough([]); known = all) {
      const response = await form.open(run, blocks, known);
      const more = response === undefined ? [] : taken(await until((seen) => isEnough(taken(seen)), response).text());
      if (response !== undefined) expect([200, 204]).toContain(response.status);
      if (form.repeatsEnd && more[0] === blocks.at(-1)) more.shift();
      if (more.length === 0 && known === all) break;
      blocks.push(...more);
      // Where the run has settled: it goes on later.
      await whole;
    }
    return blocks;
  }

  it('have what a client has that never left', async () => {
    let sessions = 0;
    await fc.assert(
      fc.asyncProperty(runs, async (given) => {
        sessions += 1;
        const conversation = `${name} ${sessions}`;
        const recorded = given.map(({ log, stored, last, has }, n) => {
          const request = requestOf?.(conversation) ?? { protocol: 'acp' };
          const end = last === null ? log.length : 1 + (last % log.length);
          const run = new RecordedRun(store, sessionIdFor(conversation), log.slice(0, end), n, request);
          const all = form.streamOf(run, run.log, conversation);
          const first = 1 + (stored % end);
          const now = form.streamOf(run, run.log.slice(0, first), conversation);
          return { run, all, first, now, had: begins ? [] : now.slice(0, has % (now.length + 1)) };
        });
        for (const { run, first } of recorded) await run.store(first);
        const own = recorded.map(({ run }) => run);
        await loaded?.(own, conversation);
        const whole = goOn(own);
        const reads = await Promise.all(recorded.map((left) => readOn(left, whole)));
        for (const [index, { all }] of recorded.entries()) expect(told(reads[index] ?? [])).toEqual(told(all));
        await loaded?.(own, conversation);
      }),
      { numRuns, seed: 52, endOnFailure: true },
    );
  });
});
