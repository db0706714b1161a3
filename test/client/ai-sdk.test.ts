import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { resumingFetch } from '../../src/client/ai-sdk.ts';

interface Call {
  readonly method: string | undefined;
  readonly url: string;
  readonly headers: Headers;
  readonly body: unknown;
}

/** A response of a stream: its bytes so far, and whether its connection then ends, breaks or stays open. */
function streamed(
  text: string,
  then: 'end' | 'break' | 'stay' = 'end',
  headers: object = { 'x-workflow-run-id': 'run' },
) {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      if (text !== '') controller.enqueue(new TextEncoder().encode(text));
      if (then === 'end') controller.close();
    },
    pull(controller) {
      if (then === 'break') controller.error(new TypeError('terminated'));
    },
  });
  return new Response(body, { headers: { ...headers } });
}

/** A `fetch` that gives these answers, one after the other; an error is thrown. */
function answering(...answers: (Response | Error)[]) {
  const calls: Call[] = [];
  const fetch: typeof globalThis.fetch = async (input, init = {}) => {
    calls.push({ method: init.method, url: String(input), headers: new Headers(init.headers), body: init.body });
    init.signal?.throwIfAborted();
    const answer = answers[calls.length - 1];
    if (answer instanceof Response) return answer;
    throw answer ?? new TypeError('fetch failed');
  };
  return { fetch, calls };
}

const post = (signal?: AbortSignal): RequestInit => ({ method: 'POST', body: '{}', ...(signal && { signal }) });
const done = 'data: [DONE]\n\n';

describe('resumingFetch', () => {
  it('continues after the last frame that has come whole, within one response', async () => {
    const { fetch, calls } = answering(
      streamed('retry: 1\nid: 1.1\ndata: a\n\nid: 1.2\ndata: b\n\nid: 2.1\nda', 'break'),
      streamed('id: 2.1\ndata: c\n\n'),
      streamed(`retry: 1\nid: 3.1\ndata: d\n\n${done}`),
    );
    const response = await resumingFetch({ fetch, delay: 1 })('/ai/echo?x=1', post());
    expect(await response.text()).toBe(
      `retry: 1\nid: 1.1\ndata: a\n\nid: 1.2\ndata: b\n\nid: 2.1\ndata: c\n\nretry: 1\nid: 3.1\ndata: d\n\n${done}`,
    );
    expect(calls.map(({ method, url, headers }) => [method, url, headers.get('last-event-id')])).toEqual([
      ['POST', '/ai/echo?x=1', null],
      ['GET', '/ai/echo/run/stream?x=1&startIndex=0', '1.2'],
      ['GET', '/ai/echo/run/stream?x=1&startIndex=0', '2.1'],
    ]);
  });

  it.each(['online', 'pageshow', 'visibilitychange'])(
    'leaves a silent connection soon after the event %s',
    async (event) => {
      const page = new EventTarget();
      vi.stubGlobal('addEventListener', page.addEventListener.bind(page));
      vi.stubGlobal('removeEventListener', page.removeEventListener.bind(page));
      vi.useFakeTimers();
      onTestFinished(() => {
        vi.unstubAllGlobals();
        vi.useRealTimers();
      });
      const { fetch, calls } = answering(streamed('id: 1.1\ndata: a\n\n', 'stay'), streamed(`id: 2.1\n${done}`));
      const response = await resumingFetch({ fetch, delay: 1 })('/ai/echo', post());
      const text = response.text();
      // The first frame comes after the event: it had come before the page was away.
      page.dispatchEvent(
        event === 'pageshow' ? Object.assign(new Event(event), { persisted: true }) : new Event(event),
      );
      await vi.advanceTimersByTimeAsync(10_000);
      expect(await text).toBe(`id: 1.1\ndata: a\n\nid: 2.1\n${done}`);
      expect(calls[1]?.headers.get('last-event-id')).toBe('1.1');
    },
  );

  it('keeps its connection where the page has only been loaded', async () => {
    const page = new EventTarget();
    vi.stubGlobal('addEventListener', page.addEventListener.bind(page));
    vi.useFakeTimers();
    onTestFinished(() => {
      vi.unstubAllGlobals();
      vi.useRealTimers();
    });
    const { fetch, calls } = answering(streamed('id: 1.1\ndata: a\n\n', 'stay'));
    const response = await resumingFetch({ fetch, delay: 1 })('/ai/echo', post());
    const reader = response.body?.getReader();
    await reader?.read();
    void reader?.read();
    page.dispatchEvent(Object.assign(new Event('pageshow'), { persisted: false }));
    await vi.advanceTimersByTimeAsync(10_000);
    expect(calls).toHaveLength(1);
  });

  it('begins anew where no frame has come, also for a chat that is resumed', async () => {
    const { fetch, calls } = answering(streamed('id: 1', 'break'), streamed(done));
    const response = await resumingFetch({ fetch, delay: 1 })('/ai/echo/my-chat/stream', { method: 'GET' });
    expect(await response.text()).toBe(done);
    expect(calls[1]?.url).toBe('/ai/echo/run/stream?&startIndex=0');
    expect(calls[1]?.headers.has('last-event-id')).toBe(false);
  });

  it('repeats a request without an answer with its key, and has another key for the next call', async () => {
    const full = new Response('full', { status: 503 });
    const { fetch, calls } = answering(new TypeError('fetch failed'), full, streamed(done), streamed(done));
    const resuming = resumingFetch({ fetch, delay: 1 });
    expect(await (await resuming('/ai/echo', post())).text()).toBe(done);
    await (await resuming('/ai/echo', post())).text();
    const keys = calls.map(({ headers }) => headers.get('idempotency-key'));
    expect(keys[0]).toMatch(/^[\d,]{8,}$/);
    expect(new Set(keys.slice(0, 3)).size).toBe(1);
    expect(keys[3]).not.toBe(keys[0]);
    expect(calls.map(({ body }) => body)).toEqual(['{}', '{}', '{}', '{}']);
  });

  it('takes no text of an agent for the id of a frame', async () => {
    const { fetch, calls } = answering(
      streamed('id: 7.1\ndata: {"delta":"\u2028id: 99.9 \u2029id: 98.9"}\n\n'),
      streamed(done),
    );
    await (await resumingFetch({ fetch, delay: 1 })('/a', post())).text();
    expect(calls[1]?.headers.get('last-event-id')).toBe('7.1');
  });

  it('reads a large frame in time that grows with its length', async () => {
    const frame = `id: 1.1\ndata: "${'a'.repeat(2_000_000)}"\n\n`;
    const bytes = new TextEncoder().encode(frame + done);
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < bytes.length; at += 65_536) controller.enqueue(bytes.slice(at, at + 65_536));
        controller.close();
      },
    });
    const { fetch } = answering(new Response(body, { headers: { 'x-workflow-run-id': 'run' } }));
    // In quadratic time, it would take longer than any test may.
    expect(await (await resumingFetch({ fetch })('/a', post())).text()).toBe(frame + done);
  });

  it('decodes a character that a break has cut in two', async () => {
    const bytes = new TextEncoder().encode('id: 1.1\ndata: é\n\n');
    const half = new Response(new Blob([bytes.slice(0, 15)]), { headers: { 'x-workflow-run-id': 'run' } });
    const { fetch } = answering(half, streamed(`id: 1.1\ndata: é\n\n${done}`));
    expect(await (await resumingFetch({ fetch, delay: 1 })('/a', post())).text()).toBe(`id: 1.1\ndata: é\n\n${done}`);
  });

  it('reconnects where the server is silent', async () => {
    const { fetch } = answering(streamed('id: 1.1\ndata: a\n\n', 'stay'), streamed(done));
    const response = await resumingFetch({ fetch, delay: 1, idleTimeout: 10 })('/a', post());
    expect(await response.text()).toBe(`id: 1.1\ndata: a\n\n${done}`);
  });

  it('gives up after as many attempts as it may make, with an error that a chat takes for a lost connection', async () => {
    const { fetch, calls } = answering(streamed('id: 1.1\ndata: a\n\n'));
    const response = await resumingFetch({ fetch, delay: 1, retries: 3 })('/a', post());
    await expect(response.text()).rejects.toThrow(TypeError);
    expect(calls).toHaveLength(4);
  });

  it('gives up a request that never has an answer, with the error of the last attempt', async () => {
    const { fetch, calls } = answering();
    await expect(resumingFetch({ fetch, delay: 1, retries: 2 })('/a', post())).rejects.toThrow('fetch failed');
    expect(calls).toHaveLength(3);
    const refused = answering(new Response('no room', { status: 503 }), new Response('no room', { status: 503 }));
    const response = await resumingFetch({ fetch: refused.fetch, delay: 1, retries: 1 })('/a', post());
    expect([response.status, await response.text()]).toEqual([503, 'no room']);
  });

  it('returns what is no stream as it is, and refusals with their text', async () => {
    for (const answer of [new Response(null, { status: 204 }), new Response('There is no agent a.', { status: 404 })]) {
      const { fetch, calls } = answering(answer);
      expect(await resumingFetch({ fetch })('/a', post())).toBe(answer);
      expect(calls).toHaveLength(1);
    }
  });

  it('ends with the text of the server where that refuses to go on', async () => {
    const { fetch } = answering(
      streamed('id: 1.1\ndata: a\n\n'),
      new Response('Run run is not kept.', { status: 410 }),
    );
    const response = await resumingFetch({ fetch, delay: 1 })('/a', post());
    await expect(response.text()).rejects.toThrow('Run run is not kept.');
  });

  it('ends when it is aborted, also between two attempts', async () => {
    const stop = new AbortController();
    const { fetch, calls } = answering(streamed('id: 1.1\ndata: a\n\n'));
    const response = await resumingFetch({ fetch, delay: 60_000 })('/a', post(stop.signal));
    const text = response.text();
    await expect.poll(() => calls.length).toBe(1);
    stop.abort(new DOMException('stopped', 'AbortError'));
    await expect(text).rejects.toThrow('stopped');
    expect(calls).toHaveLength(1);
  });
});
