import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from '../../../src/client/client.ts';
import { isFinal } from '../../../src/core/run-state.ts';
import type { Run } from '../../../src/index.ts';
import { ask } from '../serve.ts';
import { type Answer, type Ask, textOf } from './requests.ts';

/** The agents that the probes run: files of a project. */
export const agentFiles = {
  'agents/ticks.js': `
    import { defineAgent, textOf } from 'rivulet';
    import { interval, map, take } from 'rxjs';
    // Each token has its number, and the time at which it was emitted.
    const from = (first, count) => interval(50).pipe(take(count - first), map((n) => (first + n) + ':' + Date.now() + ' '));
    export default defineAgent({ name: 'ticks', description: 'Emits tokens.' }, (input, context) => {
      const count = Number(textOf(input));
      return context.step('ticks', () => from(0, count), (before) => from(before.length, count));
    }, { durable: true });`,
  'agents/silent.js': `
    import { defineAgent } from 'rivulet';
    import { concat, NEVER, of } from 'rxjs';
    export default defineAgent({ name: 'silent', description: 'Says one word, and then nothing.' }, () => concat(of('hm'), NEVER));`,
  'agents/late.js': `
    import { defineAgent, textOf } from 'rivulet';
    export default defineAgent({ name: 'late', description: 'Answers after some milliseconds.' }, async (input) => {
      await new Promise((resolve) => setTimeout(resolve, Number(textOf(input))));
      return 'at last';
    });`,
  'agents/echo.js': `
    import { defineAgent } from 'rivulet';
    export default defineAgent({ name: 'echo', description: 'Echoes.' }, (input) => input);`,
};

/** Milliseconds between the heartbeats of the nodes: `--limit heartbeat=1000`. */
export const heartbeat = 1_000;

const startStream = async (request: Ask, agent: string, text: string, headers = {}): Promise<Answer> => {
  const answer = await request('/runs', { body: ask(agent, text, { mode: 'stream' }), headers });
  if (answer.status !== 200) throw new Error(`a stream got ${answer.status}: ${(await textOf(answer)).slice(0, 200)}`);
  return answer;
};

/** Milliseconds that tokens need to the client: the median and the longest. */
export async function delays(request: Ask): Promise<{ median: number; longest: number }> {
  const answer = await startStream(request, 'ticks', '40');
  const all: number[] = [];
  for await (const piece of answer.body)
    for (const [, at] of piece.matchAll(/"\d+:(\d+) "/g)) all.push(Date.now() - Number(at));
  if (all.length < 40) throw new Error(`only ${all.length} of 40 tokens came`);
  all.sort((a, b) => a - b);
  return { median: all[20] ?? 0, longest: all.at(-1) ?? 0 };
}

/** The longest time in milliseconds without a byte of a stream whose agent is silent, in five heartbeats. */
export async function longestGap(request: Ask): Promise<number> {
  const answer = await startStream(request, 'silent', 'x');
  const stop = setTimeoutOf(5 * heartbeat, () => answer.leave());
  let last = Date.now();
  let longest = 0;
  try {
    for await (const _ of answer.body) {
      longest = Math.max(longest, Date.now() - last);
      last = Date.now();
    }
  } catch {
    // The probe has left.
  }
  clearTimeout(stop);
  return Math.max(longest, Date.now() - last);
}

const setTimeoutOf = (milliseconds: number, work: () => void): NodeJS.Timeout => setTimeout(work, milliseconds);

/** The status that a reader of a finished stream gets: 204, so that an EventSource stops. */
export async function statusAfterEnd(request: Ask): Promise<number> {
  const created = await request('/runs', { body: ask('echo', 'x', { mode: 'sync' }) });
  const { run_id }: Run = JSON.parse(await textOf(created));
  const events = JSON.parse(await textOf(await request(`/runs/${run_id}/events`)));
  const headers = { accept: 'text/event-stream', 'last-event-id': String(events.events.length) };
  const answer = await request(`/runs/${run_id}/events`, { headers });
  await textOf(answer);
  return answer.status;
}

/** The status of a request with a body of 9 MB. */
export async function statusOfLargeBody(request: Ask): Promise<number> {
  const answer = await request('/runs', { body: ask('echo', 'x'.repeat(9_000_000), { mode: 'async' }) });
  await textOf(answer);
  return answer.status;
}

/** The status of a sync run that takes some milliseconds. */
export async function statusOfLateRun(request: Ask, milliseconds: number): Promise<number> {
  const answer = await request('/runs', { body: ask('late', String(milliseconds), { mode: 'sync' }) });
  await textOf(answer);
  return answer.status;
}

/** Milliseconds until a silent run is cancelled whose only reader has left; `direct` asks a node. */
export async function timeToCancel(request: Ask, direct: string, most: number): Promise<number> {
  const answer = await startStream(request, 'silent', 'x', { 'on-disconnect': 'cancel' });
  let text = '';
  for await (const piece of answer.body) {
    text += piece;
    if (text.includes('"hm"')) break;
  }
  const run_id = /"run_id":"([^"]+)"/.exec(text)?.[1] ?? '';
  answer.leave();
  const left = Date.now();
  for (;;) {
    const run: Run = await (await fetch(`${direct}/runs/${run_id}`)).json();
    const time = Date.now() - left;
    if (run.status === 'cancelled' || time > most) return time;
    if (isFinal(run.status)) throw new Error(`expected the run to be cancelled, and it is ${JSON.stringify(run)}`);
    await sleep(20);
  }
}

/** How a stream ends whose node dies: as if it were whole, or with an error. Undefined where its node has not died. */
export type EndOfDead = 'clean end' | 'error' | undefined;

/**
 * Reads a run with several raw readers and one official client while `kill` ends a node. Resolves to how raw readers lost
 * their streams, and whether the client has got each token once.
 */
export async function whenNodeDies(
  request: Ask,
  url: string | undefined,
  kill: () => Promise<void>,
): Promise<{ ends: EndOfDead[]; whole: boolean | undefined }> {
  const count = 60;
  const created = await request('/runs', { body: ask('ticks', String(count), { mode: 'async' }) });
  const { run_id }: Run = JSON.parse(await textOf(created));
  const read = async (): Promise<EndOfDead> => {
    let text = '';
    try {
      const answer = await request(`/runs/${run_id}/events`, { headers: { accept: 'text/event-stream' } });
      for await (const piece of answer.body) text += piece;
    } catch {
      return 'error';
    }
    return text.includes('run.completed') ? undefined : 'clean end';
  };
  const follow = async (): Promise<boolean | undefined> => {
    if (url === undefined) return undefined;
    const client = createClient({ url, reconnect: { retries: 100, firstRetries: 100 } });
    let text = '';
    for await (const event of client.watch(run_id))
      if (event.type === 'message.part') text += event.part.content?.replace(/:\d+/, '') ?? '';
    return text === Array.from({ length: count }, (_, n) => `${n} `).join('');
  };
  const readers = Promise.all([read(), read(), read(), read()]);
  const following = follow();
  await sleep(600);
  await kill();
  return { ends: await readers, whole: await following };
}
