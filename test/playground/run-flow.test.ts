import { describe, expect, it } from 'vitest';
import { reduce } from '../../src/core/fold.ts';
import { progress, trajectory } from '../../src/index.ts';
import { contentOf, segmentsOf } from '../../src/playground/conversation/content.ts';
import { flowOf, progressOf, RunNotes } from '../../src/playground/conversation/run-flow.ts';
import type { Event } from '../../src/schema/event.ts';
import type { Run } from '../../src/schema/run.ts';

const started: Run = { run_id: 'r', agent_name: 'a', status: 'in-progress', output: [], created_at: '1' };
const message = { role: 'agent/a', parts: [] };
const open: Event = { type: 'message.created', message };
const say = (content: string): Event => ({ type: 'message.part', part: { content } });
const generic = (n: number): Event => ({ type: 'generic', generic: { n } });
const asks: Event = {
  type: 'run.awaiting',
  run: { ...started, status: 'awaiting', await_request: { type: 'message', message } },
};
const answered: Event = { type: 'run.in-progress', run: { ...started, await_resume: { type: 'message', message } } };

function record(...events: Event[]): { run: Run; notes: RunNotes } {
  const notes = new RunNotes();
  let run = started;
  for (const [at, event] of events.entries()) {
    run = reduce(run, event);
    notes.add(event, run, at);
  }
  return { run, notes };
}

/** The flow as words. */
function flow(...events: Event[]): string[] {
  const { run, notes } = record(...events);
  return flowOf(run, notes).map((item) =>
    item.kind === 'notes' ? `notes ${item.notes.map(({ generic: { n } }) => n)}` : item.kind,
  );
}

describe('the flow of a run', () => {
  it('has questions, events and messages in the order of the log', () => {
    const end: Event = { type: 'message.completed', message: { ...message, completed_at: '2' } };
    expect(flow(generic(1), open, say('a'), end, generic(2), asks, answered, generic(3), open, say('b'))).toEqual([
      'notes 1',
      'message',
      'notes 2',
      'question',
      'notes 3',
      'message',
    ]);
  });

  it('has the events of an open message in their places, and those in a text after the block that they came into', () => {
    const step: Event = { type: 'message.part', part: trajectory({ message: 'step' }) };
    const { run, notes } = record(open, generic(1), say('One sent'), generic(2), say('ence.'), step, generic(3));
    const segments = segmentsOf(contentOf(run.output[0]?.parts ?? []).blocks, notes.of(0));
    expect(segments).toMatchObject([
      { kind: 'steps', rows: [{ note: { generic: { n: 1 } } }] },
      { kind: 'text', text: 'One sentence.', inserts: [{ at: 8, note: { generic: { n: 2 } } }] },
      { kind: 'steps', rows: [{ step: { kind: 'step' } }, { note: { generic: { n: 3 } } }] },
    ]);
  });

  it('joins the progress of one piece of work, which ends when something follows', () => {
    const [first, second] = [progress('Reading', { done: 1, total: 3 }), progress('Reading', { done: 2, total: 3 })];
    const { notes } = record(open, first, second, progress('Writing', { done: 0, total: 9 }), say('a'));
    expect(notes.of(0).map(({ generic: data, began, ended }) => [progressOf(data)?.message, began, ended])).toEqual([
      ['Reading', 1, 3],
      ['Writing', 3, 4],
    ]);
  });

  it('keeps a limited number of events', () => {
    const { notes } = record(open, ...Array.from({ length: 200 }, (_, n) => generic(n)));
    expect(notes.of(0).map(({ generic: { n } }) => n)).toEqual(Array.from({ length: 50 }, (_, n) => n + 150));
  });

  it('joins a call with its result', () => {
    const { blocks } = contentOf([
      trajectory({ tool_name: 'search', tool_input: { query: 'a' }, message: 'Searching' }),
      { content: 'text' },
      trajectory({ tool_name: 'search', tool_output: { hits: 1 } }),
    ]);
    expect(blocks).toMatchObject([
      { kind: 'step', parts: [0, 2], step: { tool_input: { query: 'a' }, tool_output: { hits: 1 } } },
      { kind: 'text' },
    ]);
  });
});
