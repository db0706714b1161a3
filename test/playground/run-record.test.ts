import type { Run } from 'rivulet';
import { describe, expect, it } from 'vitest';
import { Citations } from '../../src/playground/conversation/citations.tsx';
import { contentOf } from '../../src/playground/conversation/content.ts';
import { formatAge, formatClock, formatDuration } from '../../src/playground/elements/format.ts';
import { Histogram, RunRecord } from '../../src/playground/inspector/run-record.ts';

describe('a histogram', () => {
  it('has at most its number of bars, and keeps all counts when it merges them', () => {
    const histogram = new Histogram(10, 8);
    for (let at = 0; at < 1_000; at += 5) histogram.add(at);
    expect(histogram.bars.length).toBeLessThanOrEqual(8);
    expect(histogram.bars.reduce((sum, bar) => sum + bar, 0)).toBe(200);
  });

  it('has the most counts of one second, whatever the width of its bars', () => {
    const peaks = [1, 50, 1_600].map((width) => {
      const histogram = new Histogram(width, 8);
      for (const at of [0, 10, 20, 999, 1_000, 1_300, 5_000, 5_001, 5_002, 5_003, 5_999]) histogram.add(at);
      return histogram.peak;
    });
    expect(peaks).toEqual([5, 5, 5]);
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
    expect(citations.all.map(({ number }) => number)).toEqual([1, 2, 3]);
  });

  it('are marked in the next text if they end in Markdown syntax', () => {
    expect(citations.split(8, 'ij').flatMap(({ marks }) => marks)).toEqual([]);
    expect(citations.split(8, 'ij', 5).flatMap(({ marks }) => marks.map(({ number }) => number))).toEqual([2]);
  });
});

describe('the content of a message', () => {
  it('is split into text, citations, steps and artifacts', () => {
    const step = { kind: 'trajectory' as const, message: 'looked' };
    const { text, blocks, citations, artifacts } = contentOf([
      { metadata: step },
      { content: 'a' },
      { content: 'b', metadata: { kind: 'citation' } },
      { content: 'PGI+', content_encoding: 'base64', content_type: 'text/plain' },
      { content: '<b>', content_type: 'text/html' },
      { name: 'c.txt', content: 'c' },
    ]);
    expect([text, citations.length, artifacts.length]).toEqual(['ab', 1, 3]);
    expect(blocks.map(({ kind }) => kind)).toEqual(['step', 'text', 'artifact', 'artifact', 'artifact']);
  });
});

const run: Run = { run_id: 'r', agent_name: 'a', status: 'in-progress', output: [], created_at: '1' };

describe('a run’s record', () => {
  it('keeps the newest events and counts all of them', () => {
    const record = new RunRecord('r', 0);
    const created = { type: 'run.created' as const, run };
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

describe('ages', () => {
  it('are given in their largest unit', () => {
    expect([-5_000, 400, 12_900, 200_000, 3_700_000, 200_000_000].map(formatAge)).toEqual([
      'now',
      'now',
      '12 s ago',
      '3 min ago',
      '1 h ago',
      '2 d ago',
    ]);
  });

  it('have a clock time with milliseconds', () => {
    expect(formatClock(new Date(2026, 0, 1, 9, 5, 7, 45).getTime())).toBe('09:05:07.045');
  });
});
