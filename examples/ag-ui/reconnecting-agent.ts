import { HttpAgent, type HttpAgentConfig, runHttpRequest, transformHttpEventStream } from '@ag-ui/client';

/**
 * An HttpAgent whose streams survive broken connections: after a break it asks for the frames after the last one that it
 * has, and the agent sees one stream. `connectAgent({ runId })` reads a run that another page, or this one before a
 * reload, has begun. `@ag-ui/client` 1.0 and 0.0.59 both have what is used here. `pause`: milliseconds before each try.
 */
export class ReconnectingAgent extends HttpAgent {
  constructor(config: HttpAgentConfig, pause = 500) {
    super(config);
    const send = this.fetch;
    this.fetch = (url, init) =>
      joined((headers) => send(url, { ...init, headers: { ...init.headers, ...headers } }), pause);
  }

  protected override connect({ runId, threadId }: { runId: string; threadId: string }) {
    const url = `${this.url}/runs/${runId}?${new URLSearchParams({ threadId })}`;
    const { signal } = this.abortController;
    return transformHttpEventStream(runHttpRequest(() => this.fetch(url, { headers: this.headers, signal })));
  }
}

/** One response from as many as it takes. A request may be repeated: its runId makes one run. */
async function joined(open: (headers: HeadersInit) => Promise<Response>, pause: number): Promise<Response> {
  // With it, a stream that the server has to break off is broken, and not ended with RUN_ERROR.
  const headers: Record<string, string> = { 'X-Run-Id': 'resumes' };
  const next = async (tries = 20): Promise<Response> => {
    const response = await open(headers).catch((error: Error) => error);
    const failed = response instanceof Error ? response.name !== 'AbortError' : response.status >= 500;
    if (failed && tries > 1) return new Promise((resolve) => setTimeout(resolve, pause)).then(() => next(tries - 1));
    if (response instanceof Error) throw response;
    return response;
  };
  async function* frames(response: Response): AsyncGenerator<string> {
    for (let ended = false; !ended; response = ended ? response : await next()) {
      if (!response.ok) throw new Error(await response.text());
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ''; ; ) {
        const { value = undefined } = (await reader?.read().catch(() => undefined)) ?? {};
        if (value === undefined) break;
        text += value;
        // Whole frames only: the rest of a frame that was cut comes again.
        const whole = text.slice(0, text.lastIndexOf('\n\n') + 2);
        if (!whole.endsWith('\n\n')) continue;
        text = text.slice(whole.length);
        const id = whole.match(/(?<=^id: ).+$/gm)?.at(-1);
        if (id !== undefined) headers['Last-Event-ID'] = id;
        ended ||= /^data: \{"type":"RUN_(FINISHED|ERROR)"/m.test(whole);
        yield whole;
      }
    }
  }
  const first = await next();
  if (!first.ok) return first;
  const all = frames(first);
  const body = new ReadableStream<string>({
    async pull(controller) {
      const { value, done } = await all.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: async () => void (await all.return(undefined)),
  });
  return new Response(body.pipeThrough(new TextEncoderStream()), { headers: first.headers });
}
