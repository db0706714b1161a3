import type { Message, Run } from 'rivulet';
import { describe, expect, it } from 'vitest';
import { curl } from '../../src/playground/calls.ts';
import { Citations } from '../../src/playground/citations.ts';
import { contentOf } from '../../src/playground/content.ts';
import { Histogram } from '../../src/playground/histogram.ts';
import { duration } from '../../src/playground/measures.ts';
import { initial, kindOf, problemOf } from '../../src/playground/question.ts';
import { RunRecord } from '../../src/playground/record.ts';
import { saidIn } from '../../src/playground/said.ts';

describe('a histogram', () => {
  it('never grows beyond its bars, and loses nothing when it makes them wider', () => {
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
    { kind: 'citation', title: 'of no place' },
  ]);

  it('cut the text where they begin and end, also where they overlap', () => {
    const pieces = citations
      .cut(0, 'abcdefgh')
      .map(({ text, cited, marks }) => [text, cited, marks.map((m) => m.number)]);
    expect(pieces).toEqual([
      ['abc', true, []],
      ['d', true, [1]],
      ['ef', true, [2]],
      ['gh', false, []],
    ]);
    expect(citations.unplaced.map(({ number }) => number)).toEqual([3]);
  });

  it('are marked in the next text where they end in signs that are not shown', () => {
    expect(citations.cut(8, 'ij').flatMap(({ marks }) => marks)).toEqual([]);
    expect(citations.cut(8, 'ij', 5).flatMap(({ marks }) => marks.map(({ number }) => number))).toEqual([2]);
  });
});

describe('the content of a message', () => {
  it('parts words, sources, steps and things', () => {
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

describe('a question', () => {
  it('is asked with what fits its schema', () => {
    expect(
      [
        { enum: ['a'] },
        { type: 'integer' },
        { type: 'array', items: { type: 'string' } },
        { type: 'array', items: { type: 'number' } },
        { type: 'object' },
        { oneOf: [] },
      ].map(kindOf),
    ).toEqual(['choice', 'number', 'list', 'json', 'json', 'json']);
    const schema = {
      type: 'object',
      properties: { a: { type: 'boolean' }, b: { type: 'string', default: 'x' }, c: {} },
    };
    expect(initial(schema)).toEqual({ a: false, b: 'x', c: undefined });
  });

  it.each([
    ['await_resume.message.parts[0].content/a/b: must be number.', '/a/b', 'must be number.'],
    ["await_resume.message.parts[0].content: must have required property 'a'.", '/a', 'is required.'],
    ['await_resume.message.parts: must be number.', '', 'must be number.'],
    ['The run awaits nothing.', '', 'The run awaits nothing.'],
  ])('finds the field of %s', (message, path, text) => {
    expect(problemOf(message)).toEqual({ path, text });
  });
});

describe('a call as a line for a shell', () => {
  it('is what a shell takes for one, whatever is said in it', () => {
    const call = {
      method: 'POST',
      url: 'http://h/runs',
      headers: [['accept', 'text/event-stream']] as const,
      body: `{"a":"it's $HOME"}`,
    };
    expect(curl(call)).toBe(
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

describe('what was said elsewhere', () => {
  it('is what stands before a run’s output in the history', () => {
    const [q1, a1, q2, q3, a2] = [
      message('user', '1'),
      message('agent/a', '2'),
      message('user', '3'),
      message('user', '4'),
      message('agent/a', '5'),
    ] as const;
    const runs = [run('second', [a2], '5'), run('first', [a1], '2')];
    expect(saidIn([q1, a1, q2, q3, a2], runs)).toEqual({ first: q1.parts, second: [...q2.parts, ...q3.parts] });
    // The history that was read begins later than the session.
    expect(saidIn([q2, q3, a2], runs)).toEqual({ second: [...q2.parts, ...q3.parts] });
  });
});

describe('a run’s record', () => {
  it('keeps the newest events and counts all of them', () => {
    const record = new RunRecord('r', 0);
    const created = { type: 'run.created' as const, run: run('r', [], '1') };
    record.add(created, 1);
    for (let at = 0; at < 20_000; at += 1) record.add({ type: 'message.part', part: { content: 'x' } }, 2 + at);
    expect(record.entries.length).toBeLessThan(10_000);
    expect([record.total, record.tokenCount, record.entries.at(-1)?.id]).toEqual([20_001, 20_000, 20_001]);
    expect([record.firstToken, record.rate]).toEqual([2, 1_000]);
  });
});

describe('durations', () => {
  it('are as exact as somebody reads them', () => {
    expect([0.2, 12.4, 3_456, 34_567, 125_000, 7_260_000].map(duration)).toEqual([
      '<1 ms',
      '12 ms',
      '3.46 s',
      '34.6 s',
      '2 min 05 s',
      '2 h 1 min',
    ]);
  });
});
