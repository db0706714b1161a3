import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fold } from '../../../src/core/fold.ts';
import type { Event, Run } from '../../../src/index.ts';
import { a2aFrames } from '../../../src/protocols/a2a/projection.ts';
import { taskOf } from '../../../src/protocols/a2a/task-object.ts';
import { busyLogs, logs } from '../../support/logs.ts';
import { expectExactRest, framesOf } from '../continues.ts';
import { type AnyTask, foldFrame, joined, StreamFrame, TaskShape } from './shapes.ts';

const conversation = { taskId: '01990000-0000-7000-8000-000000000001', contextId: 'any “context”\u2028' };
const input = [{ id: 'm1', role: 'user', parts: [{ content_type: 'text/plain', content: 'hi' }] }];
const projection = a2aFrames(conversation, input);

const dataIn = (frame: string): unknown => JSON.parse(/^data: (.*)\nid: [\d.]+\n\n$/.exec(frame)?.[1] ?? 'null');

/** The Run that a log has at its end. */
function runOf(log: readonly string[]): Run {
  let run: Run | undefined;
  for (const line of log) {
    const event: Event = JSON.parse(line);
    if (run !== undefined) run = fold(run, event);
    else if ('run' in event) run = event.run;
  }
  if (run === undefined) throw new Error('the log has no run');
  return run;
}

describe('the frames of any log', () => {
  it.each([
    ['to HTTP+JSON', {}],
    ['to JSON-RPC', { id: '"7"' }],
    ['with cursors', { cursors: true }],
    ['to JSON-RPC with cursors', { id: '7', cursors: true }],
  ])('continue exactly after any frame, %s', (_, form) => expectExactRest(a2aFrames(conversation, input, form)));

  it('are for JSON-RPC responses, and with cursors have their SSE id, to the same updates', () => {
    const own = a2aFrames(conversation, input, { id: '"7"', cursors: true });
    fc.assert(
      fc.property(logs, (log) => {
        const plain = framesOf(projection, log).map(dataIn);
        for (const [index, frame] of framesOf(own, log).entries()) {
          const [kind = '', value] = Object.entries(Object(plain[index]))[0] ?? [];
          const [, position] = /\nid: (\S+)/.exec(frame) ?? [];
          const metadata = { 'urn:rivulet:a2a:cursor:1': position };
          const result = { [kind]: { metadata, ...Object(value) } };
          expect(dataIn(frame)).toEqual({ jsonrpc: '2.0', id: '7', result });
        }
      }),
    );
  });

  it('have the shapes of the protocol, and no others', () => {
    fc.assert(
      fc.property(busyLogs, (log) => {
        for (const frame of framesOf(projection, log)) expect(StreamFrame.problem(dataIn(frame))).toBeUndefined();
      }),
      { numRuns: 100 },
    );
  });

  it('fold in a client to the task that a reader gets at once', () => {
    fc.assert(
      fc.property(logs, (log) => {
        let folded: AnyTask | undefined;
        for (const frame of framesOf(projection, log)) folded = foldFrame(folded, dataIn(frame));
        const whole = taskOf(conversation, runOf(log), input);
        // Texts that a file stands between are two in the task.
        const artifacts = TaskShape.of(whole).artifacts ?? [];
        const shown = artifacts.map((one) => ({ ...one, parts: joined([], one.parts) }));
        expect(folded?.artifacts ?? []).toEqual(shown);
        expect(folded?.status.state).toEqual(whole.status.state);
        expect(folded?.status.timestamp).toEqual(whole.status.timestamp);
      }),
      { numRuns: 200 },
    );
  });

  it('have ids that count events, and parts of events', () => {
    fc.assert(
      fc.property(logs, (log) => {
        const ids = framesOf(projection, log).map((frame) =>
          /\nid: (\d+)(?:\.(\d+))?\n/.exec(frame)?.slice(1).map(Number),
        );
        const places = ids.map((id) => (id?.[0] ?? 0) * 1_000 + (Number.isNaN(id?.[1]) ? 999 : (id?.[1] ?? 0)));
        expect(places).toEqual([...new Set(places)].sort((a, b) => a - b));
      }),
    );
  });
});
