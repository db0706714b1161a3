import { trajectory } from 'rivulet';
import { createClient } from 'rivulet/client';
import { concat, defer, map, NEVER, of } from 'rxjs';
import { describe, expect, it, type TestContext } from 'vitest';
import { agent, askOnce, Tap } from '../support/agents.ts';
import { deferred } from '../support/deferred.ts';
import { screenOf } from '../support/screen.ts';
import { serveAll } from '../support/serve.ts';
import { Terminal } from '../support/terminal.ts';

const tap = new Tap();

const schema = {
  type: 'object',
  properties: {
    guests: { type: 'integer', minimum: 1, description: 'How many?' },
    vegan: { type: 'boolean' },
    room: { enum: ['blue', 'red'], default: 'red' },
    note: { type: 'string' },
  },
  required: ['guests', 'vegan', 'room'],
};
const form = agent('form', (_, context) =>
  context.await('A table for how many?', { schema }).pipe(map(({ message }) => message.parts[0]?.content ?? '')),
);
const pattern = agent('pattern', (_, context) => {
  // Patterns are checked by the server only.
  const properties = { name: { type: 'string' }, code: { type: 'string', pattern: '^[A-Z][0-9]$' } };
  return context
    .await('Which name?', { schema: { type: 'object', properties, required: ['name', 'code'] } })
    .pipe(map(({ message }) => message.parts[0]?.content ?? ''));
});
/** Resolves when the test has seen the running step. */
const { promise: dug, resolve: dig } = deferred();
const steps = agent('steps', (_, context) =>
  concat(
    of(trajectory({ tool_name: 'dig', tool_input: { deep: true } })),
    defer(() => dug).pipe(map(() => 'Found **gold**.')),
    context.await('Shall I go on? Answer yes or no.').pipe(map(() => 'On.')),
  ),
);
const endless = agent('endless', () => concat(of('It begins. '), NEVER));
// A generator that awaits does not see that it is cancelled.
const stubborn = agent('stubborn', async function* () {
  yield 'It begins. ';
  await new Promise(() => {});
});

const agents = [tap.agent, askOnce, form, pattern, steps, endless, stubborn];
const { url } = await serveAll(agents, { limits: { cancelGrace: 60_000 } });

function open({ onTestFinished }: TestContext, ...args: string[]): Terminal {
  const terminal = new Terminal(args, { RIVULET_URL: url });
  onTestFinished(() => terminal.kill());
  return terminal;
}

const statusOf = async (terminal: Terminal): Promise<string> => {
  const run_id = /run ([0-9a-f-]{36})/.exec(terminal.shown)?.[1] ?? '';
  return (await createClient({ url }).get(run_id)).status;
};

describe.concurrent('on a terminal, rivulet', () => {
  it('prints the answer as it arrives', async (t) => {
    const terminal = open(t, 'run', 'tap', 'x');
    await tap.started();
    tap.push('One, ');
    await terminal.shows('One,');
    tap.push('two.');
    await terminal.shows('two.');
    expect(terminal.child.exitCode).toBe(null);
    tap.complete();
    expect(await terminal.ended()).toBe(0);
    expect(terminal.shown).toContain('\u001b[2mrun ');
    expect(screenOf(terminal.shown)).toContain('One, two.');
  });

  it('renders Markdown and shows steps while they run, and neither with NO_COLOR', async (t) => {
    const terminal = open(t, 'run', 'steps', 'x');
    await terminal.shows('dig {"deep":true}');
    expect(terminal.shown).toMatch(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] dig/);
    dig();
    await terminal.at('Shall I go on?', 'y\r');
    expect(await terminal.ended()).toBe(0);
    const screen = screenOf(terminal.shown).join('\n');
    expect(screen).toMatch(/\n✓ dig \{"deep":true\}( \S.*)?\n\nFound gold\.\n/);
    const plain = new Terminal(['run', 'steps', 'x'], { RIVULET_URL: url, NO_COLOR: '1' });
    t.onTestFinished(() => plain.kill());
    await plain.shows('Shall I go on?');
    expect(plain.shown).toMatch(/\r\ndig \{"deep":true\}\r\nFound \*\*gold\*\*\.\r\n/);
    expect(plain.shown).not.toContain('\u001b[2m');
  });

  it('prompts for the reply that the run awaits, and sends it', async (t) => {
    const terminal = open(t, 'run', 'ask', 'x');
    await terminal.shows('> ');
    expect(screenOf(terminal.shown).join('\n')).toMatch(/before\.\n+Well\?\n/);
    terminal.type('of course\r');
    expect(await terminal.ended()).toBe(0);
    expect(screenOf(terminal.shown).join('\n')).toMatch(/\nYou said of course\.\n\nCompleted .*\n$/);
  });

  it('prompts field by field for the value of a schema, and again for a value that does not fit', async (t) => {
    const terminal = open(t, 'run', 'form', 'x');
    await terminal.at('guests (whole number, 1 or more) How many? > ', '0\r');
    await terminal.shows('guests must be 1 or more.');
    await terminal.at('guests (whole number, 1 or more) How many? > ', '12\r');
    await terminal.at('vegan (yes or no) > ', 'yes\r');
    await terminal.shows('2  red');
    await terminal.shows('room [red] > ');
    // Input that is typed ahead, or pasted, is read line by line.
    terminal.type('1\r12\r');
    expect(await terminal.ended()).toBe(0);
    expect(terminal.shown).toContain('{"guests":12,"vegan":true,"room":"blue","note":"12"}');
  });

  it('prompts again for what the server refuses, with the other values as defaults', async (t) => {
    const terminal = open(t, 'run', 'pattern', 'x');
    await terminal.at('name > ', 'Ada\r');
    await terminal.at('code > ', 'x\r');
    await terminal.shows('The reply was refused: code must match pattern');
    await terminal.at('name [Ada] > ', '\r');
    await terminal.at('code > ', 'A1\r');
    expect(await terminal.ended()).toBe(0);
    expect(terminal.shown).toContain('{"name":"Ada","code":"A1"}');
  });

  it('asks the question of a run again with resume, and leaves the run alone at Ctrl-C', async (t) => {
    const { run_id } = await createClient({ url }).sync('ask', 'x');
    const left = open(t, 'resume', run_id);
    await left.shows('Well?');
    await left.at('> ', '\u0003');
    expect(await left.ended()).toBe(130);
    expect((await createClient({ url }).get(run_id)).status).toBe('awaiting');
    const terminal = open(t, 'resume', run_id);
    await terminal.at('> ', 'at last\r');
    expect(await terminal.ended()).toBe(0);
    expect(screenOf(terminal.shown)).toContain('You said at last.');
    expect(terminal.shown).not.toContain('before.');
  });

  it('aborts its prompt when another client replies first', async (t) => {
    const terminal = open(t, 'run', 'ask', 'x');
    await terminal.shows('> ');
    const { runs } = await createClient({ url }).runs({ agent_name: 'ask', status: 'awaiting' });
    const mine = runs.find(({ run_id }) => terminal.shown.includes(run_id));
    await createClient({ url }).resume(mine?.run_id ?? '', 'me first');
    expect(await terminal.ended()).toBe(0);
    expect(terminal.shown).toContain('You said me first.');
  });

  it('leaves the run awaiting at Ctrl-D, and prints how to reply', async (t) => {
    const terminal = open(t, 'run', 'ask', 'x');
    await terminal.at('> ', '\u0004');
    expect(await terminal.ended()).toBe(4);
    expect(terminal.shown).toMatch(/to be asked again: npx rivulet resume [\da-f-]{36} --url/);
    expect(await statusOf(terminal)).toBe('awaiting');
  });

  it('cancels the run at Ctrl-C', async (t) => {
    const terminal = open(t, 'run', 'endless', 'x');
    await terminal.at('It begins.', '\u0003');
    expect(await terminal.ended()).toBe(130);
    expect(terminal.shown).toContain('The run was cancelled.');
    expect(await statusOf(terminal)).toBe('cancelled');
  });

  it('cancels the run at Ctrl-C during a prompt, too', async (t) => {
    const terminal = open(t, 'run', 'ask', 'x');
    await terminal.at('> ', '\u0003');
    expect(await terminal.ended()).toBe(130);
    expect(await statusOf(terminal)).toBe('cancelled');
  });

  it('exits at once at the second Ctrl-C, even if the agent ignores the first', async (t) => {
    const terminal = open(t, 'run', 'stubborn', 'x');
    await terminal.at('It begins.', '\u0003');
    await terminal.shows('press Ctrl-C again to exit at once');
    // No event announces the status `cancelling`.
    while ((await statusOf(terminal)) !== 'cancelling');
    terminal.type('\u0003');
    expect(await terminal.ended()).toBe(130);
    expect(await statusOf(terminal)).toBe('cancelling');
  });

  it('does not cancel a watched run at Ctrl-C', async (t) => {
    const { run_id } = await createClient({ url }).start('endless', 'x');
    const terminal = open(t, 'watch', run_id);
    await terminal.at('It begins.', '\u0003');
    expect(await terminal.ended()).toBe(130);
    expect(terminal.shown).toContain(`rivulet cancel ${run_id}`);
    expect((await createClient({ url }).get(run_id)).status).toBe('in-progress');
  });
});
