import type { Message, Run } from 'rivulet';
import { describe, expect, it } from 'vitest';
import { Citations } from '../../src/playground/citations.ts';
import { contentOf } from '../../src/playground/content.ts';
import { formatDuration } from '../../src/playground/format.ts';
import { toCurl } from '../../src/playground/request-log.ts';
import { Histogram, RunRecord } from '../../src/playground/run-record.ts';
import { inputsFrom } from '../../src/playground/session-history.ts';

describe('a histogram', () => {
  it('has at most its number of bars, and keeps all counts when it merges them', () => {
    const histogram = new Histogram(10, 8);
    for (let at = 0; at < 1_000; at += 5) histogram.add(at);
    expect(histogram.bars.length).toBeLessThanOrEqual(8);
    expect(histogram.bars.reduce((sum, bar) => sum + bar, 0)).toBe(200);
    expect(histogram.peak).toBeCloseTo(200, 0);
  });
});

describe('citations', () => {
  const citations = new Citations([
    { kind: 'citation', start_index: 0, end_index: 4 },
    { kind: 'citation', start_index: 3, end_index: 6 },
    { kind: 'citation', title: 'without a position' },
  ]);

  it('split the text where they begin and end, also where they overlap', () => {
    const pieces = citations
      .split(0, 'abcdefgh')
      .map(({ text, cited, marks }) => [text, cited, marks.map((m) => m.number)]);
    expect(pieces).toEqual([
      ['abc', true, []],
      ['d', true, [1]],
      ['ef', true, [2]],
      ['gh', false, []],
    ]);
    expect(citations.unpositioned.map(({ number }) => number)).toEqual([3]);
  });

  it('are marked in the next text if they end in Markdown syntax', () => {
    expect(citations.split(8, 'ij').flatMap(({ marks }) => marks)).toEqual([]);
    expect(citations.split(8, 'ij', 5).flatMap(({ marks }) => marks.map(({ number }) => number))).toEqual([2]);
  });
});

describe('the content of a message', () => {
  it('is split into text, citations, steps and artifacts', () => {
    const step = { kind: 'trajectory' as const, message: 'looked' };
    const { text, steps, citations, artifacts } = contentOf([
      { metadata: step },
      { content: 'a' },
      { content: 'b', metadata: { kind: 'citation' } },
      { content: 'PGI+', content_encoding: 'base64', content_type: 'text/plain' },
      { content: '<b>', content_type: 'text/html' },
      { name: 'c.txt', content: 'c' },
    ]);
    expect([text, steps, citations.length, artifacts.length]).toEqual(['ab', [step], 1, 3]);
  });
});

describe('a request as a curl command', () => {
  it('is quoted for a shell', () => {
    const request = {
      method: 'POST',
      url: 'http://h/runs',
      headers: [['accept', 'text/event-stream']] as const,
      body: `{"a":"it's $HOME"}`,
    };
    expect(toCurl(request)).toBe(
      `curl -N -X POST 'http://h/runs' \\\n  -H 'accept: text/event-stream' \\\n  --data-binary '{"a":"it'\\''s $HOME"}'`,
    );
  });
});

const run = (run_id: string, output: Message[], finished_at: string): Run => ({
  run_id,
  agent_name: 'a',
  status: 'completed',
  output,
  created_at: finished_at,
  finished_at,
});
const message = (role: string, created_at: string): Message => ({ role, created_at, parts: [{ content: created_at }] });

describe('inputs of other browsers', () => {
  it('are the messages before a run’s output in the history', () => {
    const [q1, a1, q2, q3, a2] = [
      message('user', '1'),
      message('agent/a', '2'),
      message('user', '3'),
      message('user', '4'),
      message('agent/a', '5'),
    ] as const;
    const runs = [run('second', [a2], '5'), run('first', [a1], '2')];
    expect(inputsFrom([q1, a1, q2, q3, a2], runs)).toEqual({ first: q1.parts, second: [...q2.parts, ...q3.parts] });
    // The history that was read begins after the session's beginning.
    expect(inputsFrom([q2, q3, a2], runs)).toEqual({ second: [...q2.parts, ...q3.parts] });
  });
});

describe('a run’s record', () => {
  it('keeps the newest events and counts all of them', () => {
    const record = new RunRecord('r', 0);
    const created = { type: 'run.created' as const, run: run('r', [], '1') };
    record.add(created, 1);
    for (let at = 0; at < 20_000; at += 1) record.add({ type: 'message.part', part: { content: 'x' } }, 2 + at);
    expect(record.events.length).toBeLessThan(10_000);
    expect([record.eventCount, record.tokenCount, record.events.at(-1)?.number]).toEqual([20_001, 20_000, 20_001]);
    expect([record.firstTokenAt, record.rate]).toEqual([2, 1_000]);
  });
});

describe('durations', () => {
  it('are rounded to what a person reads', () => {
    expect([0.2, 12.4, 3_456, 34_567, 125_000, 7_260_000].map(formatDuration)).toEqual([
      '<1 ms',
      '12 ms',
      '3.46 s',
      '34.6 s',
      '2 min 05 s',
      '2 h 1 min',
    ]);
  });
});
