import { type Run, textOf } from 'rivulet';
import { runAgent } from 'rivulet/testing';
import { describe, expect, it } from 'vitest';
import { createDemo } from '../../agents/demo.ts';
import { ask, serveApi } from '../support/serve.ts';

const demo = createDemo(0);
const trip = JSON.stringify({ river: 'Danube', days: 20, boat: true });

describe('demo', () => {
  it('streams text, a step, a chart and a citation of its text, and asks with a form', async () => {
    const { text, parts, events, questions, run } = await runAgent(demo, 'hi');
    expect(run.status).toBe('awaiting');
    const [cited] = parts.flatMap(({ metadata }) => (metadata?.kind === 'citation' ? [metadata] : []));
    expect(text.slice(cited?.start_index, cited?.end_index)).toMatch(/^The \*\*Nile\*\*.*once$/);
    const shown = parts.flatMap(({ name, metadata }) => name ?? metadata?.kind ?? []);
    expect(shown).toEqual(['citation', 'trajectory', 'rivers.svg']);
    expect(events.filter(({ type }) => type === 'generic')).toHaveLength(5);
    expect(questions[0]?.schema).toMatchObject({ required: ['river', 'days'] });
  });

  it('answers the form with a text and a file', async () => {
    const { text, parts, run } = await runAgent(demo, 'hi', { answers: [trip] });
    expect(run.status).toBe('completed');
    expect(text).toContain('**143 km a day** by boat');
    expect(textOf(parts.filter(({ name }) => name === 'plan.md'))).toContain('# Danube');
  });

  it('remembers the last trip of its session', async () => {
    const { post } = await serveApi([demo]);
    const asked: Run = await (await post('/runs', ask('demo'))).json();
    const await_resume = { message: { parts: [{ content: trip }] } };
    await (await post(`/runs/${asked.run_id}`, { mode: 'sync', await_resume })).json();
    const again: Run = await (await post('/runs', ask('demo', 'hi', { session_id: asked.session_id }))).json();
    expect(textOf(again.output)).toContain('This is trip 2; the last one was **20 days** on the Danube.');
  });
});
