import type { Run } from 'rivulet';
import { describe, expect, it } from 'vitest';
import { createDemo } from '../../agents/demo.ts';
import { ask, serve, textOf } from '../support/serve.ts';

const trip = { river: 'Danube', days: 20, boat: true };

/** The tour in a session, to its end. */
async function tour(session_id?: string): Promise<{ asked: Run; done: Run; again: () => Promise<Run> }> {
  const served = await serve([createDemo(0)]);
  const asked: Run = await (await served.post('/runs', ask('demo', 'hi', { session_id }))).json();
  const await_resume = { type: 'message', message: { parts: [{ content: JSON.stringify(trip) }] } };
  const done: Run = await (await served.post(`/runs/${asked.run_id}`, { mode: 'sync', await_resume })).json();
  return {
    asked,
    done,
    again: async () => (await served.post('/runs', ask('demo', 'hi', { session_id: asked.session_id }))).json(),
  };
}

describe('demo', () => {
  it('streams text, a step, a chart and a citation of words that are there, and asks with a form', async () => {
    const { asked } = await tour();
    const parts = asked.output.flatMap((message) => message.parts);
    const [cited] = parts.flatMap(({ metadata }) => (metadata?.kind === 'citation' ? [metadata] : []));
    expect(textOf(asked).slice(Number(cited?.start_index), Number(cited?.end_index))).toMatch(
      /^The \*\*Nile\*\*.*once$/,
    );
    expect(parts.map(({ name, metadata }) => name ?? metadata?.kind).filter(Boolean)).toEqual([
      'citation',
      'trajectory',
      'rivers.svg',
    ]);
    expect(asked.await_request?.schema).toMatchObject({ required: ['river', 'days'] });
  });

  it('answers the form with a text and a file', async () => {
    const { done } = await tour();
    expect(done.status).toBe('completed');
    expect(textOf(done)).toContain('**143 km a day** by boat');
    expect(done.output.flatMap(({ parts }) => parts).find(({ name }) => name === 'plan.md')?.content).toContain(
      '# Danube',
    );
  });

  it('remembers the last trip of its session', async () => {
    const { again } = await tour();
    expect(textOf(await again())).toContain('This is trip 2; the last one was **20 days** on the Danube.');
  });
});
