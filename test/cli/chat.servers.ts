import { mkdtempSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { file } from 'rivulet';
import { createClient } from 'rivulet/client';
import { concat, defer, from, map, NEVER, of, toArray } from 'rxjs';
import { afterAll, describe, expect, it, type TestContext } from 'vitest';
import { agent, askOnce, Tap } from '../support/agents.ts';
import { rivulet } from '../support/command.ts';
import { CuttingProxy } from '../support/cutting-proxy.ts';
import { newFolder } from '../support/folder.ts';
import { screenOf } from '../support/screen.ts';
import { serveAll } from '../support/serve.ts';
import { Terminal } from '../support/terminal.ts';

/** Says how many messages came before, and repeats the input. */
const counts = agent('counts', (input, { session }) =>
  session.history.pipe(
    toArray(),
    map((history) => `After **${history.length}**: ${JSON.stringify(input[0]?.parts.map(({ content }) => content))}`),
  ),
);
const files = agent('files', () => from(['Here.', file('a.csv', 'x')]));
const fails = agent('fails', () => defer(() => Promise.reject(new Error('No way.'))));
const endless = agent('endless', () => concat(of('It begins.'), NEVER));

const tap = new Tap();

const state = newFolder(afterAll);
const { url } = await serveAll([tap.agent, counts, files, fails, endless, askOnce], { retry: 5 });

/** A chat that waits for a message; each has a history of its own unless a folder is given. */
async function open(t: TestContext, args: string[], env: Record<string, string> = {}): Promise<Terminal> {
  const XDG_STATE_HOME = mkdtempSync(join(state, 'own-'));
  const terminal = new Terminal(['chat', ...args], { RIVULET_URL: url, XDG_STATE_HOME, ...env });
  t.onTestFinished(() => terminal.kill());
  await terminal.shows(' > ');
  return terminal;
}
/** Types Ctrl-D at the next prompt: without one, the terminal has the key, and no program. */
async function leave(terminal: Terminal): Promise<number | null> {
  await terminal.at(' > ', '\u0004');
  return terminal.ended();
}
const screen = (terminal: Terminal): string => screenOf(terminal.shown).join('\n');
const sessionIn = (terminal: Terminal): string => /--session ([0-9a-f-]{36})/.exec(terminal.shown)?.[1] ?? '';

describe.concurrent('rivulet chat', () => {
  it('has many turns in one session, and goes on with it later', async (t) => {
    const terminal = await open(t, ['counts']);
    expect(terminal.shown).toContain("counts: The test's counts.");
    await terminal.typed('one\r', 'Completed');
    await terminal.at('counts > ', 'two\r');
    await terminal.shows('Completed');
    expect(screen(terminal)).toContain('After 2: ["two"]');
    terminal.type('/new\r');
    await terminal.at('A new conversation.', 'three\r');
    await terminal.shows('Completed');
    expect(screen(terminal)).toContain('After 0: ["three"]');
    expect(await leave(terminal)).toBe(0);
    const later = await open(t, ['counts', '--session', sessionIn(terminal)]);
    await later.typed('four\r', 'Completed');
    expect(screen(later)).toContain('After 2: ["four"]');
    later.type('/quit\r');
    expect(await later.ended()).toBe(0);
  });

  it('reads several lines after a backslash, and pasted lines as one message', async (t) => {
    const terminal = await open(t, ['counts']);
    terminal.type('one\\\r');
    await terminal.at('… ', 'two\r');
    await terminal.shows('Completed');
    expect(screen(terminal)).toContain('["one\\ntwo"]');
    await terminal.at('counts > ', '\u001b[200~a\rb\u001b[201~');
    await terminal.typed('\r', 'Completed');
    expect(screen(terminal)).toContain('["a\\nb"]');
  });

  it('remembers what was typed, also in the next chat', async (t) => {
    const XDG_STATE_HOME = mkdtempSync(join(state, 'shared-'));
    const first = await open(t, ['counts'], { XDG_STATE_HOME });
    await first.typed('remember me\r', 'Completed');
    await leave(first);
    const second = await open(t, ['counts'], { XDG_STATE_HOME });
    second.type('\u001b[A');
    await second.at('remember me', '\r');
    await second.shows('Completed');
    expect(screen(second)).toContain('["remember me"]');
  });

  it('cancels the run at Ctrl-C and goes on; without a run, the second Ctrl-C leaves', async (t) => {
    const terminal = await open(t, ['endless']);
    terminal.type('x\r');
    await terminal.at('It begins.', '\u0003');
    await terminal.shows('The run was cancelled.');
    await terminal.at('endless > ', '\u0003');
    await terminal.shows('Press Ctrl-C again');
    await terminal.at('endless > ', '\u0003');
    expect(await terminal.ended()).toBe(130);
  });

  it('asks the questions of the agent in place, also again after Ctrl-D', async (t) => {
    const terminal = await open(t, ['ask']);
    await terminal.typed('x\r', 'Well?');
    await terminal.at('> ', '\u0004');
    await terminal.shows('/answer asks again.');
    await terminal.at('ask > ', '/answer\r');
    await terminal.shows('Well?');
    await terminal.at('> ', 'fine\r');
    await terminal.shows('Completed');
    expect(screen(terminal)).toContain('You said fine.');
  });

  it('sends and lists files, and saves those of the conversation', async (t) => {
    const into = join(state, 'saved');
    const terminal = await open(t, ['files']);
    terminal.type('/attach package.json\r');
    await terminal.at('package.json goes with the next message.', 'x\r');
    await terminal.at('Completed', `/files ${into}\r`);
    await terminal.shows('saved as');
    expect(readdirSync(into)).toEqual(['a.csv']);
    const [run] = (await createClient({ url }).runs({ agent_name: 'files' })).runs;
    expect(run?.status).toBe('completed');
  });

  it('goes on after a failed run, an unknown command and a missing file', async (t) => {
    const terminal = await open(t, ['fails']);
    terminal.type('x\r');
    await terminal.at('The run failed: No way.', '/hlep\r');
    await terminal.at('there is no command /hlep. Did you mean /help?', '/attach nowhere\r');
    await terminal.at('rivulet: nowhere: there is no such file', '/help\r');
    await terminal.at('/files [FOLDER]', '/quit\r');
    expect(await terminal.ended()).toBe(0);
  });

  it('takes up a stream that broke off', async (t) => {
    const proxy = await CuttingProxy.open(url, []);
    t.onTestFinished(() => proxy.close());
    const terminal = await open(t, ['tap'], { RIVULET_URL: proxy.url });
    terminal.type('x\r');
    await tap.started();
    tap.push('One, ');
    await terminal.shows('One,');
    proxy.break();
    await terminal.shows('Connection lost');
    tap.push('two.');
    proxy.mend();
    tap.complete();
    await terminal.shows('Completed');
    expect(screen(terminal)).toContain('One, two.');
  });

  it('suggests an agent, and needs a terminal', async (t) => {
    const terminal = new Terminal(['chat', 'conuts'], { RIVULET_URL: url });
    t.onTestFinished(() => terminal.kill());
    expect(await terminal.ended()).toBe(2);
    expect(terminal.shown).toContain('Did you mean counts?');
    const piped = await rivulet(['chat', 'counts'], { env: { RIVULET_URL: url } });
    expect(piped).toMatchObject({ code: 2, err: expect.stringContaining('chat needs a terminal') });
  });
});
