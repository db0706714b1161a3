import { concat, map, NEVER, of, startWith, throwError, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { AgentError, type Message, type Run, saidIn, textOf } from '../../src/index.ts';
import { agent, askOnce, durable, never } from '../support/agents.ts';
import { ask, type Served, shared } from '../support/serve.ts';

const hangs = agent('hangs', () => NEVER.pipe(startWith('Once upon ')));
const hangsDurably = durable('hangs-durably', () => NEVER.pipe(startWith('Once upon ')));
const fails = agent('fails', () =>
  concat(
    of('I begin. '),
    throwError(() => new AgentError('no_ink', 'The pen is empty.')),
  ),
);
const failsAtOnce = agent('fails-at-once', () => {
  throw new Error('No.');
});
const failsLater = agent('fails-later', async function* () {
  yield { role: 'agent', parts: [{ content: 'All of it.' }] };
  throw new Error('No.');
});
const stray = agent('stray', async function* () {
  yield 'The cat ';
  yield { role: 'agent', parts: [], finish_reason: 'interrupted' as const };
  throw new Error('No.');
});
/** Its output is the history that it sees. */
const remembers = agent('remembers', (_, { session }) =>
  session.history.pipe(
    toArray(),
    map((seen) => JSON.stringify(seen)),
  ),
);

const agents = [askOnce, fails, failsAtOnce, failsLater, hangs, hangsDurably, never, remembers, stray];
const served = shared(agents);

const brief = ({ role, parts, finish_reason }: Message): string =>
  [role, textOf({ parts }), finish_reason ?? ''].join(' | ');

/** What the agent of the next turn is told of the session. */
async function historyOf({ post }: Served, session_id: string): Promise<Message[]> {
  const run: Run = await (await post('/runs', ask('remembers', 'And now?', { session_id }))).json();
  return JSON.parse(textOf(run.output));
}

/** Makes a run, cancels it once it has come to a status or said something, and waits for its end. */
async function cancelled(at: Served, name: string, reached: (run: Run) => boolean, headers = {}): Promise<string> {
  const { run_id, session_id }: Run = await (
    await at.post('/runs', ask(name, 'Go', { mode: 'async' }), headers)
  ).json();
  const read = async (): Promise<Run> => (await at.get(`/runs/${run_id}`)).json();
  await expect.poll(async () => reached(await read())).toBe(true);
  await at.post(`/runs/${run_id}/cancel`);
  await expect.poll(async () => (await read()).status).toBe('cancelled');
  return session_id ?? '';
}

describe('the history of a session', () => {
  it.each(['hangs', 'hangs-durably'])('has the answer of a cancelled run as far as it came (%s)', async (name) => {
    const at = await served();
    const session_id = await cancelled(at, name, ({ output }) => output.length > 0);
    const history = await historyOf(at, session_id);
    expect(history.map(brief)).toEqual(['user | Go | ', `agent/${name} | Once upon  | cancelled`]);
    expect(history[1]?.completed_at).toMatch(/Z$/);
  });

  it('says of a run without an answer that it was cancelled', async () => {
    const at = await served();
    const session_id = await cancelled(at, 'never', ({ status }) => status === 'in-progress');
    expect((await historyOf(at, session_id)).map(brief)).toEqual(['user | Go | ', 'agent/never |  | cancelled']);
  });

  it('has the question of a cancelled run, and no reply', async () => {
    const at = await served();
    const session_id = await cancelled(at, 'ask', ({ status }) => status === 'awaiting');
    expect((await historyOf(at, session_id)).map(brief)).toEqual([
      'user | Go | ',
      'agent/ask | before.  | ',
      'agent/ask | Well? | ',
      'agent/ask |  | cancelled',
    ]);
  });

  it('has what was said to a run that was cancelled in the queue', async () => {
    const at = await served();
    const first: Run = await (await at.post('/runs', ask('hangs', 'One', { mode: 'async' }))).json();
    const queued = ask('hangs', 'Two', { mode: 'async', session_id: first.session_id });
    const second: Run = await (await at.post('/runs', queued, { 'if-busy': 'enqueue' })).json();
    for (const { run_id } of [second, first]) {
      await at.post(`/runs/${run_id}/cancel`);
      await expect.poll(async () => (await (await at.get(`/runs/${run_id}`)).json()).status).toBe('cancelled');
    }
    const said = (await historyOf(at, first.session_id ?? '')).map(brief);
    expect(said.slice(0, 2)).toEqual(['user | Two | ', 'agent/hangs |  | cancelled']);
    expect(said[2]).toBe('user | One | ');
  });

  it.each([
    ['fails', ['agent/fails | I begin.  | failed']],
    ['fails-at-once', ['agent/fails-at-once |  | failed']],
    ['fails-later', ['agent/fails-later | All of it. | failed']],
  ])('has the answer of a run that failed: %s', async (name, answer) => {
    const at = await served();
    const { session_id, status }: Run = await (await at.post('/runs', ask(name, 'Go'))).json();
    expect(status).toBe('failed');
    expect((await historyOf(at, session_id ?? '')).map(brief)).toEqual(['user | Go | ', ...answer]);
  });

  it('has the mark alone where a failed run had begun to say its answer anew', async () => {
    const at = await served();
    const { session_id }: Run = await (await at.post('/runs', ask('stray', 'Go'))).json();
    expect((await historyOf(at, session_id ?? '')).map(brief)).toEqual(['user | Go | ', 'agent/stray |  | failed']);
  });

  it('is without the turn again when its run is removed', async () => {
    const at = await served();
    const { run_id, session_id }: Run = await (await at.post('/runs', ask('fails', 'Go'))).json();
    await (await at.post('/runs', ask('fails', 'Again', { session_id }))).json();
    expect((await fetch(`${at.url}/runs/${run_id}`, { method: 'DELETE' })).status).toBe(204);
    expect((await historyOf(at, session_id ?? '')).map(brief)).toEqual([
      'user | Again | ',
      'agent/fails | I begin.  | failed',
    ]);
  });

  it('is told to the agent that follows a response by its id', async () => {
    const at = await served();
    const failed = await (await at.post('/v1/responses', { model: 'fails', input: 'Go' })).json();
    const next = { model: 'remembers', input: 'And now?', previous_response_id: failed.id };
    const { output } = await (await at.post('/v1/responses', next)).json();
    const seen: Message[] = JSON.parse(output[0].content[0].text);
    expect(seen.map(brief)).toEqual(['user | Go | ', 'agent/fails | I begin.  | failed']);
  });
});

it('a model that reads the conversation sees an answer that was stopped before its first word', () => {
  const said = saidIn([
    { role: 'user', parts: [{ content_type: 'text/plain', content: 'Go' }] },
    { role: 'agent/a', parts: [], finish_reason: 'cancelled' },
  ]);
  expect(said.map(({ role, ends }) => [role, ends])).toEqual([
    ['user', true],
    ['agent', true],
  ]);
});
