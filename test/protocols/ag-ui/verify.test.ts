import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { runEventOf } from '../../../src/core/recognize.ts';
import { type Position, Projector } from '../../../src/http/sse/projection.ts';
import { type AgUiRun, agUiFrames, frameOf, toolAvailable } from '../../../src/protocols/ag-ui/projection.ts';
import { placeIn } from '../../../src/protocols/ag-ui/streams.ts';
import { leadOf, Transcript } from '../../../src/protocols/ag-ui/transcript.ts';
import { boundsAfter } from '../../../src/protocols/turns.ts';
import { busyLogs } from '../../support/logs.ts';
import { expectExactRest, outlineIn } from '../continues.ts';
import { generations, type TestClient } from './clients.ts';

const url = 'http://127.0.0.1/';

/** Feeds a client with bodies, one for each of its requests. */
function fed(make: (typeof generations)[number][1], messages: object[] = [], state: unknown = {}) {
  let body = '';
  const client = make({
    url,
    threadId: 'a thread',
    initialMessages: messages,
    initialState: state,
    fetch: async () => new Response(body, { headers: { 'content-type': 'text/event-stream' } }),
  });
  const customs: object[] = [];
  const onCustomEvent = ({ event: { name, value } }: { event: { name: string; value: unknown } }): void => {
    // An answered one is not repeated: its tool has run.
    if (name !== toolAvailable) customs.push({ name, value });
  };
  const take = (frames: readonly string[]): Promise<string[]> => {
    body = frames.join('');
    const resume = client.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: 'cancelled' }));
    return client.go(resume.length > 0 ? { resume } : {}, { onCustomEvent });
  };
  return { client, customs, take };
}

const told = ({ client: { messages, state }, customs }: ReturnType<typeof fed>): object =>
  structuredClone({ messages, state, customs });
const asked = [{ id: 'm1', role: 'user', content: 'hi' }];

/** The frames of one run of a client, from a place in its turn. */
function framesOf(run: AgUiRun, log: readonly string[], { event, frames }: Position, end: number): string[] {
  const projector = new Projector(agUiFrames(run));
  return log.slice(0, end).flatMap((line, index) => {
    const own = projector.take(line, index + 1);
    if (index + 1 === event) return own.slice(frames);
    return index < event ? [] : own;
  });
}

function transcriptAt(run: AgUiRun, log: readonly string[], place: Position): Transcript {
  const transcript = new Transcript({ protocol: 'ag-ui', state: {}, metadata: { messages: asked } }, []);
  const projector = new Projector(agUiFrames(run));
  for (const [index, line] of log.slice(0, place.event).entries()) {
    const own = projector.take(line, index + 1);
    transcript.add(line, index + 1 === place.event ? own.slice(0, place.frames) : own);
  }
  return transcript;
}

/** The client answers the call of its tool with a message, as it does before its next run. */
function answerTool(client: TestClient, line: string | undefined, after: readonly string[]): void {
  const resumed = after.find((one) => runEventOf(one) === 'in-progress');
  const content: string = resumed === undefined ? '' : JSON.parse(resumed).run.await_resume.message.parts[0].content;
  if (line === undefined || !line.includes('"tool":{"name":"browse"')) return;
  const call = client.messages.flatMap((one) => ('toolCalls' in one ? (one.toolCalls as { id: string }[]) : [])).at(-1);
  if (call !== undefined) {
    client.messages = [
      ...client.messages,
      { id: `${call.id}.result`, role: 'tool', toolCallId: call.id, content } as never,
    ];
  }
}

describe.each(generations)('the official client %s', (_, make, modern) => {
  const run: AgUiRun = { threadId: 'a thread', runId: 'a run', modern, tools: ['browse'] };

  it('accepts the frames of any log, and has the same after any cut, with a cursor or with snapshots', async () => {
    vi.spyOn(console, 'warn').mockImplementation(() => {});
    const cuts = fc.record({ anywhere: fc.nat(), reloads: fc.boolean() });
    await fc.assert(
      fc.asyncProperty(busyLogs, cuts, async (log, { anywhere, reloads }) => {
        const outline = outlineIn(log);
        const whole = fed(make, asked);
        let broken = fed(make, asked);
        for (let start = 0; start < log.length; ) {
          const bounds = boundsAfter(outline, start);
          const end = bounds.end ?? log.length;
          const all = framesOf(run, log, { event: start, frames: Number.POSITIVE_INFINITY }, end);
          // TanStack AI gives the id of a frame to the next one where the id is not the first line.
          for (const frame of all) expect(frame).toMatch(/^id: .+\ndata: /);
          await whole.take(all);

          // The stream breaks after some frames; the id of the last one is the cursor.
          const got = all.slice(0, anywhere % (all.length + 1));
          const [, event = '0', frames] = /^id: (\d+)(?:\.(\d+))?\n/.exec(got.at(-1) ?? '') ?? [];
          const place = {
            event: Number(event),
            frames: frames === undefined ? Number.POSITIVE_INFINITY : Number(frames),
          };
          const cursor = got.length === 0 ? { event: start, frames: Number.POSITIVE_INFINITY } : place;
          const from = placeIn(outline, bounds, reloads ? undefined : cursor);
          const transcript = transcriptAt(run, log, from);
          const given = { from, cursor: reloads ? undefined : cursor };
          const lead = transcript.started ? leadOf(transcript, run, 'run', given) : [];
          if (reloads) broken = fed(make);
          else if (got.length > 0) await broken.take(got);
          await broken.take([...lead, ...framesOf(run, log, from, end)]);

          // A client that begins anew in a run that has events but no frames has its own messages still.
          if (lead.length > 0 || !reloads) expect(told(broken)).toEqual(told(whole));
          for (const { client } of [whole, broken]) answerTool(client, log[end - 1], log.slice(end));
          start = end;
        }
      }),
      { numRuns: Number(process.env.FC_RUNS ?? 25) },
    );
  });
});

describe('patches of the state', () => {
  const patched = (...patches: object[][]): Transcript => {
    const transcript = new Transcript({ protocol: 'ag-ui', state: { a: [1], b: {} } }, []);
    for (const delta of patches) transcript.add('', [frameOf(1, JSON.stringify({ type: 'STATE_DELTA', delta }))]);
    return transcript;
  };

  it('change nothing where one of their operations does not fit', () => {
    const add = { op: 'add', path: '/a/-', value: 2 };
    const wrong = [
      [{ op: 'replace', path: '/none/x', value: 1 }],
      [{ op: 'move', from: '/b', path: '/b/c' }],
      [add, { op: 'test', path: '/a/0', value: 9 }],
      [{ op: 'add', path: '/__proto__/x', value: 1 }],
    ];
    expect(patched(...wrong, [add]).state).toEqual({ a: [1, 2], b: {} });
  });

  it('of one operation take no copy: a log may have thousands, and the state be large', () => {
    const transcript = patched();
    const { state } = transcript;
    transcript.add('', [frameOf(1, '{"type":"STATE_DELTA","delta":[{"op":"replace","path":"/a/0","value":3}]}')]);
    expect(transcript.state).toBe(state);
    expect(state).toEqual({ a: [3], b: {} });
  });
});

describe('the projection of AG-UI', () => {
  it('goes on exactly after any frame of any log', () =>
    expectExactRest(agUiFrames({ threadId: 'a thread', runId: 'a run', modern: true, tools: ['browse'] })));
});
