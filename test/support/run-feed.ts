import { createParser } from 'eventsource-parser';
import { onTestFinished } from 'vitest';
import type { Run } from '../../src/index.ts';

/** A client of `GET /runs` as an event stream, which keeps the newest state of each run. */
export class RunFeed {
  readonly #abort: AbortController;
  #wake = (): void => {};
  /** The types of the events, and the runs that they carried. */
  readonly seen: { readonly type: string | undefined; readonly run: Run | undefined }[] = [];
  readonly rows = new Map<string, Run>();
  position: string | undefined;
  ended = false;

  private constructor(abort: AbortController) {
    this.#abort = abort;
  }

  static async open(url: string, query = '', position?: string): Promise<RunFeed> {
    const abort = new AbortController();
    const headers = { accept: 'text/event-stream', ...(position !== undefined && { 'last-event-id': position }) };
    const response = await fetch(`${url}/runs${query}`, { headers, signal: abort.signal });
    if (response.status !== 200) throw new Error(`status ${response.status}: ${await response.text()}`);
    const feed = new RunFeed(abort);
    onTestFinished(() => feed.cut());
    void feed.#read(response);
    return feed;
  }

  /** Resolves when the condition holds. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) {
      if (this.ended) throw new Error(`the feed has ended; it had ${JSON.stringify(this.seen.slice(-20))}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  ready(): Promise<void> {
    return this.until(() => this.seen.some(({ type }) => type === 'ready'));
  }

  /** Resolves when the newest state of a run has this status. */
  has(run_id: string, status: Run['status']): Promise<void> {
    return this.until(() => this.rows.get(run_id)?.status === status);
  }

  /** Statuses of a run, in the order in which they came. */
  statuses(run_id: string): string[] {
    return this.seen.flatMap(({ run }) => (run?.run_id === run_id ? [run.status] : []));
  }

  cut(): void {
    this.#abort.abort();
  }

  async #read({ body }: Response): Promise<void> {
    const parser = createParser({
      onEvent: ({ id, event, data }) => {
        const { run } = JSON.parse(data);
        if (id !== undefined) this.position = id;
        if (event === 'reset') this.rows.clear();
        if (run !== undefined) this.rows.set(run.run_id, run);
        this.seen.push({ type: event, run });
        this.#wake();
      },
    });
    try {
      for await (const chunk of body?.pipeThrough(new TextDecoderStream()) ?? []) parser.feed(chunk);
    } catch {
      // The test or the server has cut the connection.
    }
    this.ended = true;
    this.#wake();
  }
}
