import { createClient, type Events, type MessagePart } from 'rivulet/client';
import { lastValueFrom, takeWhile, tap, toArray } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { turn } from '../support/turn.ts';
import {
  type Answer,
  awaiting,
  completed,
  created,
  fastReconnect,
  frame,
  openStream,
  progress,
  refused,
  resumed,
  run_id,
  script,
  stream,
  token,
} from './script.ts';

const url = 'http://rivulet.test/';
const soon = 'retry: 1\n\n';
const lost = () => new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED') });
const typesOf = async (events: Events): Promise<string[]> =>
  (await lastValueFrom(events.pipe(toArray()))).map((event) =>
    event.type === 'message.part' ? (event.part.content ?? '') : event.type,
  );

function setUp(answers: Answer[], more: Parameters<typeof fastReconnect>[0] = {}) {
  const { fetch, requests } = script(...answers);
  const { breaks, reconnect } = fastReconnect(more);
  return { client: createClient({ url, fetch, reconnect }), requests, breaks };
}

describe('following a run', () => {
  it('creates it with one POST, and resumes with GET after the last event', async () => {
    const { client, requests, breaks } = setUp([
      stream(soon + created + progress + token(3)),
      stream(soon + token(4)),
      stream(soon + completed(5)),
    ]);
    expect(await typesOf(client.run('a', 'Hi'))).toEqual([
      'run.created',
      'run.in-progress',
      't3',
      't4',
      'run.completed',
    ]);
    expect(requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /runs',
      `GET /runs/${run_id}/events`,
      `GET /runs/${run_id}/events`,
    ]);
    expect(requests.map(({ headers }) => headers.get('Last-Event-ID'))).toEqual([null, '3', '4']);
    expect(requests.every(({ headers }) => headers.get('Accept') === 'text/event-stream')).toBe(true);
    expect(breaks.map(({ error }) => error.code)).toEqual(['interrupted', 'interrupted']);
  });

  it('repeats the same POST if the connection breaks before the first event', async () => {
    const { client, requests } = setUp([lost(), refused(502), stream(soon), stream(soon + created + completed(2))]);
    expect(await typesOf(client.run('a', 'Hi', { if_busy: 'enqueue', on_disconnect: 'grace=5' }))).toHaveLength(2);
    expect(requests.map(({ method }) => method)).toEqual(['POST', 'POST', 'POST', 'POST']);
    expect(new Set(requests.map(({ body }) => body)).size).toBe(1);
    const [key, ...others] = requests.map(({ headers }) => headers.get('Idempotency-Key'));
    expect(key).toMatch(/^(\d+-){3}\d+$/);
    expect(new Set(others)).toEqual(new Set([key]));
    expect(requests[3]?.headers.get('If-Busy')).toBe('enqueue');
    expect(requests[3]?.headers.get('On-Disconnect')).toBe('grace=5');
  });

  it('has a key for all attempts also where the option is undefined', async () => {
    const { client, requests } = setUp([lost(), stream(soon + created + completed(2))]);
    await typesOf(client.run('a', 'Hi', Object.assign({}, { idempotency_key: undefined })));
    const [key, again] = requests.map(({ headers }) => headers.get('Idempotency-Key'));
    expect(key).toMatch(/^(\d+-){3}\d+$/);
    expect(again).toBe(key);
  });

  it('fails at once where no attempt can send the call', async () => {
    const { client, requests } = setUp([]);
    const ring: MessagePart = { content: 'a' };
    Object.assign(ring, { ring });
    await expect(typesOf(client.run('a', ring))).rejects.toThrow(TypeError);
    await expect(typesOf(client.run('a', 'Hi', { idempotency_key: 'a\nb' }))).rejects.toThrow(TypeError);
    expect(requests).toEqual([]);
  });

  it('creates a run for each subscription, unless they share a key', async () => {
    const over = () => stream(created + completed(2));
    const { client, requests } = setUp([over(), over(), over(), over()]);
    const events = client.run('a', 'Hi');
    expect(requests).toHaveLength(0);
    await typesOf(events);
    await typesOf(events);
    const sameRun = client.run('a', 'Hi', { idempotency_key: 'mine' });
    await typesOf(sameRun);
    await typesOf(sameRun);
    const [first, second, ...mine] = requests.map(({ headers }) => headers.get('Idempotency-Key'));
    expect(first).not.toBe(second);
    expect(mine).toEqual(['mine', 'mine']);
  });

  it('emits each event once, even if the server repeats or skips events', async () => {
    const { client, requests } = setUp([
      stream(soon + created + progress + token(3)),
      stream(soon + progress + token(3) + token(4) + token(6)),
      stream(soon + token(5) + token(6) + completed(7)),
    ]);
    expect(await typesOf(client.watch(run_id))).toEqual([
      'run.created',
      'run.in-progress',
      't3',
      't4',
      't5',
      't6',
      'run.completed',
    ]);
    expect(requests.map(({ headers }) => headers.get('Last-Event-ID'))).toEqual(['0', '3', '4']);
  });

  it('reconnects after an error without an id, and reports the server’s message', async () => {
    const last = `data: ${JSON.stringify({ type: 'error', error: { code: 'server_error', message: 'The disk is full.' } })}\n\n`;
    const { client, breaks } = setUp([stream(soon + created + last), stream(completed(2))]);
    expect(await typesOf(client.watch(run_id))).toEqual(['run.created', 'run.completed']);
    expect(breaks).toMatchObject([{ error: { code: 'server_error', message: 'The disk is full.', status: 0 } }]);
  });

  it('completes at status 204', async () => {
    const { client } = setUp([stream(soon + token(8)), new Response(null, { status: 204 })]);
    expect(await typesOf(client.watch(run_id, { after: 7 }))).toEqual(['t8']);
  });

  it('continues with GET at an await, and emits the events after the reply', async () => {
    const { client, requests, breaks } = setUp([
      stream(soon + created + progress + awaiting(3)),
      stream(soon + resumed(4) + awaiting(5) + resumed(6) + completed(7)),
    ]);
    expect(await typesOf(client.run('a', 'Hi'))).toHaveLength(7);
    expect(requests[1]?.headers.get('Last-Event-ID')).toBe('3');
    expect(breaks).toEqual([]);
  });

  it('ends at an await with until: settled, as a stream and as a promise', async () => {
    const { client, requests } = setUp([stream(created + awaiting(2)), openStream(created + awaiting(2))]);
    expect(await typesOf(client.run('a', 'Hi', { until: 'settled' }))).toEqual(['run.created', 'run.awaiting']);
    expect(await typesOf(client.watch(run_id, { until: 'settled' }))).toEqual(['run.created', 'run.awaiting']);
    expect(requests).toHaveLength(2);
  });

  it('resolves to the whole Run if the last event does not repeat the output', async () => {
    const message = { role: 'agent/a', parts: [], created_at: '2026-01-01T00:00:00.000Z', completed_at: null };
    const messageCreated = frame(2, { type: 'message.created', message });
    const { client } = setUp([stream(created + messageCreated + token(3) + awaiting(4))]);
    const { status, output } = await client.sync('a', 'Hi');
    expect([status, output[0]?.parts[0]?.content]).toEqual(['awaiting', 't3']);
  });

  it('continues after an event type of a newer server', async () => {
    const { client } = setUp([stream(`${created}id: 2\ndata: {"type":"dreaming"}\n\n${completed(3)}`)]);
    expect(await typesOf(client.watch(run_id))).toEqual(['run.created', 'dreaming', 'run.completed']);
  });
});

describe('the first connection', () => {
  const delays = { minDelay: 1, maxDelay: 1 };

  it('to a dead address fails', async () => {
    const client = createClient({ url: 'http://127.0.0.1:1' });
    await expect(typesOf(client.run('a', 'Hi'))).rejects.toMatchObject({ code: 'network', retryable: true });
    await expect(lastValueFrom(client.watchRuns())).rejects.toMatchObject({ code: 'network' });
    const loop = (async () => {
      for await (const _ of client.watch(run_id));
    })();
    await expect(loop).rejects.toMatchObject({ code: 'network' });
  });

  it('to a server that does not answer fails after the time-out', async () => {
    const { fetch } = script();
    const client = createClient({ url, fetch, timeout: 20 });
    await expect(typesOf(client.run('a', 'Hi'))).rejects.toMatchObject({ code: 'silent' });
  });

  it('that is refused fails at once, unless the server asks to try again', async () => {
    const { fetch, requests } = script(
      refused(502),
      refused(503, { 'Retry-After': '0' }),
      stream(created + completed(2)),
    );
    const client = createClient({ url, fetch, reconnect: delays });
    await expect(typesOf(client.run('a', 'Hi'))).rejects.toMatchObject({ status: 502 });
    expect(requests).toHaveLength(1);
    expect(await typesOf(client.run('a', 'Hi'))).toHaveLength(2);
  });

  it('that breaks without an answer is made once more for the POST of a run, which may have arrived, and for no other', async () => {
    const { fetch, requests } = script(lost(), stream(created + completed(2)), lost(), lost(), lost());
    const client = createClient({ url, fetch, reconnect: delays });
    expect(await typesOf(client.run('a', 'Hi'))).toHaveLength(2);
    expect(requests.map(({ method }) => method)).toEqual(['POST', 'POST']);
    expect(new Set(requests.map(({ headers }) => headers.get('Idempotency-Key'))).size).toBe(1);
    await expect(typesOf(client.run('a', 'Hi'))).rejects.toMatchObject({ code: 'network' });
    expect(requests).toHaveLength(4);
    await expect(typesOf(client.watch(run_id))).rejects.toMatchObject({ code: 'network' });
    expect(requests).toHaveLength(5);
  });

  it('is over when the server has answered: later failures are tried again', async () => {
    const { fetch, requests } = script(stream(soon), lost(), lost(), stream(created + completed(2)));
    const client = createClient({ url, fetch, reconnect: delays });
    expect(await typesOf(client.run('a', 'Hi'))).toHaveLength(2);
    expect(requests).toHaveLength(4);
  });

  it('is tried again as often as the option says', async () => {
    const { fetch, requests } = script(lost(), lost(), lost());
    const client = createClient({ url, fetch, reconnect: { ...delays, firstRetries: 2 } });
    await expect(typesOf(client.run('a', 'Hi'))).rejects.toMatchObject({ code: 'network' });
    expect(requests).toHaveLength(3);
  });
});

describe('watching runs', () => {
  const state = (status: string, id?: number): string =>
    `event: run\n${id === undefined ? '' : `id: ${id}\n`}data: {"run":{"run_id":"${run_id}","agent_name":"a","status":"${status}","output":[],"created_at":"2026-01-01T00:00:00.000Z"}}\n\n`;
  const said = (type: string, id?: number): string =>
    `event: ${type}\n${id === undefined ? '' : `id: ${id}\n`}data: {}\n\n`;

  it('continues from the last position, or anew after a reset, and says when it is ready and when it begins again', async () => {
    const answers = [
      stream(soon + state('created')),
      stream(soon + state('created') + said('ready', 100) + state('awaiting', 130)),
      stream(soon + said('reset', 0) + state('completed')),
      stream(soon + said('ready', 170) + said('dream') + state('failed', 180)),
    ];
    const { client, requests } = setUp(answers);
    const seen: string[] = [];
    const options = { onReady: () => void seen.push('ready'), onReset: () => void seen.push('reset') };
    await client
      .watchRuns({ agent_name: 'a', limit: 5 }, options)
      .pipe(
        tap(({ status }) => seen.push(status)),
        takeWhile(({ status }) => status !== 'failed'),
      )
      .forEach(() => {});
    const first = ['created', 'reset', 'created', 'ready', 'awaiting'];
    expect(seen).toEqual([...first, 'reset', 'completed', 'reset', 'ready', 'failed']);
    expect(requests.map(({ headers }) => headers.get('Last-Event-ID'))).toEqual(['0', '0', '130', '0']);
    expect(requests.every(({ method, path }) => `${method} ${path}` === 'GET /runs')).toBe(true);
  });

  it('fails with not_understood for a state that is none, and reconnects after an error of the server', async () => {
    const error = `data: {"type":"error","error":{"code":"server_error","message":"The disk is full."}}\n\n`;
    const { client, breaks } = setUp([stream(soon + error), stream('event: run\ndata: {"run":{}}\n\n')]);
    await expect(lastValueFrom(client.watchRuns())).rejects.toMatchObject({ code: 'not_understood' });
    expect(breaks).toMatchObject([{ error: { message: 'The disk is full.' } }]);
  });
});

describe('reconnecting', () => {
  it.each([400, 401, 403, 404, 409, 410, 413, 415, 422, 431])('is not tried after %i', async (status) => {
    const { client, requests } = setUp([refused(status)]);
    const error = await typesOf(client.watch(run_id)).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      name: 'ClientError',
      code: `code_${status}`,
      message: `Words for ${status}.`,
      status,
    });
    expect(error).toMatchObject({ data: { status }, retryable: false });
    expect(requests).toHaveLength(1);
  });

  it.each([408, 429, 500, 502, 503, 504])('is tried after %i', async (status) => {
    const { client, requests } = setUp([stream(soon + created), refused(status), stream(completed(2))]);
    expect(await typesOf(client.watch(run_id))).toHaveLength(2);
    expect(requests).toHaveLength(3);
  });

  it.each([
    [
      'an answer that is no event stream',
      () => new Response('{}', { headers: { 'Content-Type': 'application/json' } }),
    ],
    ['an event that is no JSON', () => stream('id: 1\ndata: {"type":\n\n')],
    ['events without ids', () => stream('data: {"type":"generic","generic":{}}\n\n')],
  ])('is of no use after %s', async (_what, answer) => {
    const { client, requests } = setUp([answer()]);
    await expect(typesOf(client.watch(run_id))).rejects.toMatchObject({ code: 'not_understood', status: 200 });
    expect(requests).toHaveLength(1);
  });

  it('waits as long as the server asks, longer each time, up to the limit', async () => {
    const { fetch } = script(stream('retry: 4\n\n'), ...Array.from({ length: 6 }, lost));
    const delays: number[] = [];
    const onBreak = ({ delay }: { delay: number }) => void delays.push(delay);
    const client = createClient({ url, fetch, reconnect: { minDelay: 1, maxDelay: 20, retries: 6, onBreak } });
    await expect(typesOf(client.watch(run_id))).rejects.toMatchObject({ code: 'network', status: 0 });
    const floors = [4, 8, 16, 20, 20, 20];
    expect(delays).toHaveLength(floors.length);
    for (const [index, floor] of floors.entries()) {
      expect(delays[index]).toBeGreaterThanOrEqual(floor);
      expect(delays[index]).toBeLessThanOrEqual(floor * 1.5);
    }
  });

  it.each([
    ['seconds', () => '2'],
    ['a date', () => new Date(Date.now() + 3_000).toUTCString()],
  ])(
    'honours a Retry-After of %s',
    (_what, value) =>
      new Promise<void>((resolve, reject) => {
        // The clock stands still: on a busy machine the date would be nearer.
        vi.useFakeTimers({ toFake: ['Date'] });
        onTestFinished(() => void vi.useRealTimers());
        const { fetch } = script(refused(503, { 'Retry-After': value() }));
        const onBreak = ({ delay }: { delay: number }): void => {
          subscription.unsubscribe();
          if (delay > 1_500 && delay < 4_600) resolve();
          else reject(new Error(`the delay is ${delay}`));
        };
        const client = createClient({ url, fetch, reconnect: { maxDelay: 1, onBreak } });
        const subscription = client.watch(run_id).subscribe();
      }),
  );

  it.each([['retry: 0\n\n'], ['retry: 99999999999999\n\n']])(
    'cannot be made to spin or to sleep for ever by %j',
    (text) =>
      new Promise<void>((resolve, reject) => {
        const { fetch } = script(stream(text));
        const onBreak = ({ delay }: { delay: number }): void => {
          subscription.unsubscribe();
          if (delay >= 500 && delay <= 3_600_000) resolve();
          else reject(new Error(`the delay is ${delay}`));
        };
        const client = createClient({ url, fetch, reconnect: { onBreak } });
        const subscription = client.watch(run_id).subscribe();
      }),
  );

  it('resets its attempts with each event, but not with a comment', async () => {
    const { client, breaks } = setUp([
      lost(),
      lost(),
      stream(created),
      lost(),
      stream(': here\n\n'),
      lost(),
      stream(completed(2)),
    ]);
    expect(await typesOf(client.watch(run_id))).toHaveLength(2);
    expect(breaks.map(({ attempt }) => attempt)).toEqual([1, 2, 1, 2, 3, 4]);
  });

  it('fails with the last error after the allowed attempts', async () => {
    const { client, requests } = setUp([lost(), lost(), refused(503)], { retries: 2 });
    await expect(typesOf(client.run('a', 'Hi'))).rejects.toMatchObject({ code: 'code_503', retryable: true });
    expect(requests).toHaveLength(3);
  });

  it('is tried after a silent connection', async () => {
    const { client, breaks } = setUp([openStream(soon + created), openStream(soon), stream(completed(2))], {
      idleTimeout: 20,
    });
    expect(await typesOf(client.watch(run_id))).toEqual(['run.created', 'run.completed']);
    expect(breaks.map(({ error }) => error.code)).toEqual(['silent', 'silent']);
  });

  it('computes headers each time, and continues after a headers function that throws', async () => {
    const { fetch, requests } = script(stream(soon + created), stream(soon + progress), stream(completed(3)));
    const { breaks, reconnect } = fastReconnect();
    let calls = 0;
    const headers = async (): Promise<HeadersInit> => {
      calls += 1;
      if (calls === 2) throw new Error('no token just now');
      return { Authorization: `Bearer ${calls}` };
    };
    const client = createClient({ url, fetch, headers, reconnect });
    expect(await typesOf(client.watch(run_id))).toHaveLength(3);
    expect(requests.map(({ headers }) => headers.get('Authorization'))).toEqual(['Bearer 1', 'Bearer 3', 'Bearer 4']);
    expect(breaks[1]?.error).toMatchObject({ code: 'headers', message: expect.stringContaining('no token just now') });
  });
});

describe('a token', () => {
  it('is asked for again for each connection of a stream', async () => {
    const { fetch, requests } = script(stream(soon + created), stream(soon + progress), stream(completed(3)));
    let calls = 0;
    const token = (): string => {
      calls += 1;
      return `t${calls}`;
    };
    const client = createClient({ url, fetch, token, reconnect: fastReconnect().reconnect });
    expect(await typesOf(client.watch(run_id))).toHaveLength(3);
    expect(requests.map(({ headers }) => headers.get('Authorization'))).toEqual([
      'Bearer t1',
      'Bearer t2',
      'Bearer t3',
    ]);
  });
});

describe('unsubscribing', () => {
  it.each<[string, Answer[]]>([
    ['while a request is under way', []],
    ['while the stream is silent', [openStream(created)]],
    ['during the back-off', [lost()]],
  ])('%s aborts what there is and leaves no timer behind', async (_what, answers) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] });
    onTestFinished(() => void vi.useRealTimers());
    const { fetch, requests } = script(...answers);
    const onEvent = vi.fn();
    const subscription = createClient({ url, fetch, reconnect: { firstRetries: 1 } })
      .watch(run_id)
      .subscribe({ error: onEvent, complete: onEvent });
    await turn();
    expect(vi.getTimerCount()).toBe(1);
    subscription.unsubscribe();
    await turn();
    expect(vi.getTimerCount()).toBe(0);
    expect(requests.map(({ signal }) => signal.aborted)).toEqual([true]);
    expect(onEvent).not.toHaveBeenCalled();
  });

  it('by a signal fails with its reason, also if it had fired before', async () => {
    const { client, requests } = setUp([openStream(created)]);
    const controller = new AbortController();
    const received: string[] = [];
    const whole = (async () => {
      for await (const { type } of client.watch(run_id, { signal: controller.signal })) {
        received.push(type);
        controller.abort(new Error('enough'));
      }
    })();
    await expect(whole).rejects.toThrow('enough');
    expect(received).toEqual(['run.created']);
    await expect(typesOf(client.run('a', 'Hi', { signal: controller.signal }))).rejects.toThrow('enough');
    await expect(client.sync('a', 'Hi', { signal: controller.signal })).rejects.toThrow('enough');
    expect(requests).toHaveLength(1);
  });

  it('inside of the subscriber emits no further event', async () => {
    const { client } = setUp([stream(frame(1, { type: 'generic', generic: {} }) + token(2) + token(3) + completed(4))]);
    const received: string[] = [];
    await new Promise<void>((resolve) => {
      const subscription = client.watch(run_id).subscribe(({ type }) => {
        received.push(type);
        if (type !== 'message.part') return;
        subscription.unsubscribe();
        setImmediate(resolve);
      });
    });
    expect(received).toEqual(['generic', 'message.part']);
  });
});
