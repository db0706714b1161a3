import type { FastifyInstance } from 'fastify';
import { createServer } from 'rivulet';
import { createClient } from 'rivulet/client';
import { concat, map, NEVER, of } from 'rxjs';
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest';
import { agent, askOnce, Tap } from '../support/agents.ts';
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
const endless = agent('endless', () => concat(of('It begins. '), NEVER));
// A generator that awaits does not see that it is cancelled.
const stubborn = agent('stubborn', async function* () {
  yield 'It begins. ';
  await new Promise(() => {});
});
const control = '\u009d52;c;cm0=\u0007\u001b]52;c;cm0=\u0007\u202e\u007f';
const maliciousForm = agent('malicious-form', (_, context) => {
  const field = { type: 'string', title: control, description: control, default: control };
  const schema = { type: 'object', properties: { [`a${control}`]: field } };
  return context.await(`Well?${control}`, { schema }).pipe(map(() => ''));
});
const malicious = agent('malicious', () => 'a\u001b[2Jb\u0007');

let app: FastifyInstance;
let url: string;
beforeAll(async () => {
  const agents = [tap.agent, askOnce, form, endless, stubborn, malicious, maliciousForm];
  app = await createServer({ agents, limits: { shutdownGrace: 0, cancelGrace: 60_000 } });
  url = await app.listen({ port: 0, host: '127.0.0.1' });
});
afterAll(() => app.close());

function open({ onTestFinished }: TestContext, ...args: string[]): Terminal {
  const terminal = new Terminal(args, { RIVULET_URL: url });
  onTestFinished(() => terminal.kill());
  return terminal;
}

const statusOf = async (terminal: Terminal): Promise<string> => {
  const run_id = /run ([0-9a-f-]{36})/.exec(terminal.shown)?.[1] ?? '';
  return (await createClient({ url }).get(run_id)).status;
};

describe.concurrent('on a terminal, rivulet', { timeout: 60_000 }, () => {
  it('prints the answer as it arrives', async (t) => {
    const terminal = open(t, 'run', 'tap', 'x');
    await tap.started();
    tap.push('One, ');
    await terminal.shows('One, ');
    tap.push('two.');
    await terminal.shows('two.');
    expect(terminal.child.exitCode).toBe(null);
    tap.complete();
    expect(await terminal.ended()).toBe(0);
    expect(terminal.shown).toContain('\u001b[2mrun ');
  });

  it('prompts for the reply that the run awaits, and sends it', async (t) => {
    const terminal = open(t, 'run', 'ask', 'x');
    await terminal.shows('> ');
    expect(terminal.shown).toMatch(/before\. \r\n.*Well\?.*\r\n/);
    terminal.type('of course\r');
    expect(await terminal.ended()).toBe(0);
    expect(terminal.shown).toMatch(/You said of course\.\r\n$/);
  });

  it('prompts field by field for the value of a schema, and again for a value that the server refuses', async (t) => {
    const terminal = open(t, 'run', 'form', 'x');
    await terminal.shows('guests (whole number) How many? > ');
    terminal.type('0\r');
    await terminal.shows('vegan (yes | no) > ');
    terminal.type('yes\r');
    await terminal.shows('room (blue | red) [red] > ');
    terminal.type('\r');
    await terminal.shows('note (optional) > ');
    terminal.type('\r');
    await terminal.shows('must be >= 1');
    await terminal.shows('guests (whole number) How many? [0] > ');
    // Input that is typed ahead, or pasted, is read line by line.
    terminal.type('12\r\rblue\r12\r');
    expect(await terminal.ended()).toBe(0);
    expect(terminal.shown).toContain('{"guests":12,"vegan":true,"room":"blue","note":"12"}');
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
    await terminal.shows('> ');
    terminal.type('\u0004');
    expect(await terminal.ended()).toBe(4);
    expect(terminal.shown).toContain('rivulet resume');
    expect(await statusOf(terminal)).toBe('awaiting');
  });

  it('cancels the run at Ctrl-C', async (t) => {
    const terminal = open(t, 'run', 'endless', 'x');
    await terminal.shows('It begins.');
    terminal.type('\u0003');
    expect(await terminal.ended()).toBe(130);
    expect(terminal.shown).toContain('The run was cancelled.');
    expect(await statusOf(terminal)).toBe('cancelled');
  });

  it('cancels the run at Ctrl-C during a prompt, too', async (t) => {
    const terminal = open(t, 'run', 'ask', 'x');
    await terminal.shows('> ');
    terminal.type('\u0003');
    expect(await terminal.ended()).toBe(130);
    expect(await statusOf(terminal)).toBe('cancelled');
  });

  it('exits at once at the second Ctrl-C, even if the agent ignores the first', async (t) => {
    const terminal = open(t, 'run', 'stubborn', 'x');
    await terminal.shows('It begins.');
    terminal.type('\u0003');
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
    await terminal.shows('It begins.');
    terminal.type('\u0003');
    expect(await terminal.ended()).toBe(130);
    expect(terminal.shown).toContain(`rivulet cancel ${run_id}`);
    expect((await createClient({ url }).get(run_id)).status).toBe('in-progress');
  });

  it('removes control characters of a schema', async (t) => {
    const terminal = open(t, 'run', 'malicious-form', 'x');
    await terminal.shows('> ');
    // The colours of the command line itself are left out.
    const [first, ...rest] = terminal.shown.split('\u001b[');
    const shown = [first, ...rest.map((text) => text.replace(/^\d*[A-GJKm]/, ''))].join('');
    expect(shown).toContain('52;c;cm0=');
    expect(shown).not.toMatch(/[^\P{Cc}\r\n]|\p{Bidi_Control}/u);
    terminal.type('\u0004');
    expect(await terminal.ended()).toBe(4);
  });

  it('removes control characters of an agent’s output', async (t) => {
    const terminal = open(t, 'run', 'malicious', 'x');
    expect(await terminal.ended()).toBe(0);
    expect(terminal.shown).toMatch(/a\[2Jb\r\n$/);
  });
});
