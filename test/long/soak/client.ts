import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Run } from '../../../src/index.ts';
import { Dice } from '../../support/dice.ts';
import { nodeHeader } from './balancer.ts';
import { type Replies, replyTo } from './expected-output.ts';
import { type Known, type Ledger, questionIn, statusOf } from './ledger.ts';
import { sleep } from './measurements.ts';
import { agentName, type Order } from './orders.ts';
import { Reader } from './reader.ts';
import { Cut, Hung, type Sent, textOf, type Wire, type WireResponse } from './wire.ts';

type Mode = 'async' | 'stream' | 'sync';

export interface ClientOptions {
  readonly wire: Wire;
  readonly ledger: Ledger;
  readonly dice: Dice;
  /** See ReaderOptions. */
  readonly direct: boolean;
  /** The share of runs that are created without an idempotency key, and lost if the response is cut. */
  readonly withoutKey: number;
}

/** Creates runs, reads them, replies to them and cancels some. Each request may go to another node. */
export class Client {
  readonly #options: ClientOptions;
  readonly #wire: Wire;
  readonly #ledger: Ledger;
  readonly #dice: Dice;

  constructor(options: ClientOptions) {
    this.#options = options;
    this.#wire = options.wire;
    this.#ledger = options.ledger;
    this.#dice = options.dice;
  }

  /**
   * Places orders in a session, and stays until their runs are final. Orders that are placed together take turns.
   * Resolves to false if it is unknown whether a run was created.
   */
  async place(orders: readonly Order[], session_id: string = randomUUID()): Promise<boolean> {
    const followed = orders.map((order) => this.#follow(order, session_id, orders.length > 1));
    return (await Promise.all(followed)).every(Boolean);
  }

  async #follow(order: Order, session_id: string, enqueue: boolean): Promise<boolean> {
    const created = await this.#create(order, session_id, enqueue);
    if (created === undefined) return false;
    const { known, stream } = created;
    const requests: Promise<void>[] = [];
    const add = (request: Promise<void>): void => {
      requests.push(request);
      // Where the test is abandoned, a reader fails first, and no caller waits for this one any more.
      request.catch(() => undefined);
    };
    const replying = new Set<string>();
    const cancelAt = this.#dice.next() < 0.1 ? 1 + this.#dice.below(30) : Number.POSITIVE_INFINITY;
    const onEvent = (id: number, line: string, node: string): void => {
      if (known.cancel !== 'none') return;
      if (id >= cancelAt) add(this.#cancel(known));
      else if (statusOf(line) === 'awaiting' && !replying.has(questionIn(line))) {
        replying.add(questionIn(line));
        add(this.#reply(known, questionIn(line), node).finally(() => replying.delete(questionIn(line))));
      }
    };
    const readers = [this.#reader(known, { onEvent }).follow(stream)];
    if (this.#dice.next() < 0.5) readers.push(this.#reader(known).follow());
    await Promise.all(readers);
    await Promise.all(requests);
    return true;
  }

  #reader(known: Known, more: { onEvent?: (id: number, line: string, node: string) => void } = {}, last = 0): Reader {
    const { wire, ledger, direct } = this.#options;
    return new Reader(known, { wire, ledger, direct, dice: new Dice(this.#dice.below(2 ** 32)), ...more }, last);
  }

  /** Creates a run; undefined if that was tried only once and the response was cut. */
  async #create(order: Order, session_id: string, enqueue: boolean) {
    const mode = this.#dice.of<Mode>('async', 'async', 'async', 'stream', 'sync');
    const body = {
      agent_name: agentName(order.kind),
      session_id,
      mode,
      input: [{ parts: [{ content: JSON.stringify(order) }] }],
    };
    const withKey = this.#dice.next() >= this.#options.withoutKey;
    const headers = { ...(withKey && { 'idempotency-key': order.key }), ...(enqueue && { 'if-busy': 'enqueue' }) };
    const sent: Sent = { body, headers, slow: mode === 'sync' };
    if (!withKey) {
      const response = await this.#attempt(() => this.#wire.open('/runs', sent));
      if (response?.statusCode !== undefined && response.statusCode < 300) {
        return this.#created(response, order, session_id, mode);
      }
      response?.resume();
      this.#ledger.unanswered += 1;
      return undefined;
    }
    // Sometimes twice at the same time, at two nodes.
    const twice = mode === 'async' && this.#dice.next() < 0.15;
    const [created] = await Promise.all(
      (twice ? [sent, sent] : [sent]).map(async (request) =>
        this.#created(await this.#sendUntilAccepted('/runs', request), order, session_id, mode),
      ),
    );
    return created;
  }

  async #created(response: IncomingMessage, order: Order, session_id: string, mode: Mode) {
    const known = this.#ledger.acknowledge(order, String(response.headers['run-id']), session_id);
    if (mode === 'stream') return { known, stream: response };
    await textOf(response).then((text) => this.#checkRun(known, mode, text), unlessCut);
    return { known, stream: undefined };
  }

  #checkRun(known: Known, mode: Mode, text: string): void {
    const { run_id }: Run = JSON.parse(text);
    if (run_id !== known.run_id) this.#ledger.faults.add('a response has another run', `${known.run_id}: ${text}`);
    if (mode === 'sync') known.responses.push(text);
  }

  /** Repeats a request until its response has a status 2xx. */
  async #sendUntilAccepted(path: string, sent: Sent): Promise<IncomingMessage> {
    for (;;) {
      const response = await this.#attempt(() => this.#wire.open(path, sent));
      if (response === undefined) continue;
      const { statusCode = 0 } = response;
      if (statusCode >= 200 && statusCode < 300) return response;
      const text = await textOf(response).catch(unlessCut);
      if (statusCode !== 503 && statusCode !== 502) this.#unexpected(`POST ${path}`, response, text ?? '');
      await this.#pause();
    }
  }

  /** The result of a request; undefined if it was cut. */
  async #attempt<T>(request: () => Promise<T>): Promise<T | undefined> {
    try {
      return await request();
    } catch (error) {
      if (error instanceof Hung) this.#ledger.faults.add('a request got no response', error.message);
      unlessCut(error);
      await this.#pause();
      return undefined;
    }
  }

  /** Sends a request once; undefined if the outcome is unknown. */
  async #once(path: string, sent: Sent): Promise<WireResponse | undefined> {
    const response = await this.#attempt(() => this.#wire.call(path, sent));
    return response === undefined || response.status === 503 || response.status === 502 ? undefined : response;
  }

  /** Replies to a question: once with an idempotency key, or twice at the same time, of which one is accepted. */
  async #reply(known: Known, question: string, askedAt: string): Promise<void> {
    const index = Number(question.split('?')[1]);
    known.replies[index] ??= { sent: new Set(), accepted: new Set() };
    const replies = known.replies[index];
    // Sometimes late enough for the run to have left memory.
    await sleep(this.#dice.of(0, 0, this.#dice.below(1_200)));
    // Without a key, a paused node applies a reply to the run's next question. So only the last question gets two replies.
    const isLast = index === (known.order.kind === 'askTwice' || known.order.kind === 'askBoth' ? 1 : 0);
    if (!isLast || this.#dice.next() < 0.6) return this.#replyWithKey(known, replies, question, askedAt);
    const texts = ['a', 'b'].map((client) => replyTo(question, client));
    const outcomes = await Promise.all(texts.map((text) => this.#replyOnce(known, replies, text)));
    const accepted = outcomes.filter((outcome) => outcome === 'accepted').length;
    if (accepted === 2)
      this.#ledger.faults.add('two replies to a question were accepted', this.#place(known, question));
    if (accepted > 0 || known.cancel !== 'none') return;
    // Both were refused, although no other client replies. That is right only if one was accepted and its response was cut.
    const refusals = outcomes.flatMap((outcome) => (typeof outcome === 'object' ? [outcome.refusal] : []));
    if (refusals.length === 2 && this.#isOpen(known))
      known.doubts.push([
        'both replies to a question were refused',
        `${this.#place(known, question)}: ${refusals.join(' and ')}`,
      ]);
    while ((await this.#replyOnce(known, replies, replyTo(question, 'a'))) === 'unknown') await this.#pause();
  }

  async #replyWithKey(known: Known, { sent, accepted }: Replies, question: string, askedAt: string): Promise<void> {
    const text = replyTo(question, 'a');
    sent.add(text);
    for (;;) {
      const mode = this.#dice.of<Mode>('async', 'async', 'sync', 'stream');
      const request = { ...resume(text, mode), headers: { 'idempotency-key': question } };
      if (mode === 'stream') {
        const stream = await this.#attempt(() => this.#wire.open(`/runs/${known.run_id}`, request));
        if (stream?.statusCode === 200) {
          this.#countResume(stream, askedAt);
          accepted.add(text);
          return this.#reader(known, {}, -1).readStream(stream);
        }
        // The next attempt, in another mode, deals with a refusal.
        stream?.resume();
        await this.#pause();
        continue;
      }
      const response = await this.#once(`/runs/${known.run_id}`, request);
      if (response?.status === (mode === 'sync' ? 200 : 202)) {
        this.#countResume(response, askedAt);
        this.#checkRun(known, mode, response.text);
        accepted.add(text);
        return;
      }
      if (response !== undefined) {
        if (this.#isOpen(known))
          known.doubts.push(['a reply was refused', `${this.#place(known, question)}: ${response.text}`]);
        if (!(await this.#isAsking(known, question))) return;
      }
      await this.#pause();
    }
  }

  async #replyOnce(
    known: Known,
    replies: Replies,
    text: string,
  ): Promise<'accepted' | 'unknown' | { readonly refusal: string }> {
    replies.sent.add(text);
    const response = await this.#once(`/runs/${known.run_id}`, resume(text, 'async'));
    if (response === undefined) return 'unknown';
    if (response.status === 409) return { refusal: response.text };
    if (response.status !== 202) {
      this.#unexpected(this.#place(known, text), response, response.text);
      return { refusal: response.text };
    }
    this.#countResume(response, known.mark?.split('.')[0] ?? '');
    replies.accepted.add(text);
    return 'accepted';
  }

  /** Whether the run awaits a reply to this question, as far as a node knows. */
  async #isAsking({ run_id }: Known, question: string): Promise<boolean> {
    const response = await this.#once(`/runs/${run_id}`, {});
    if (response?.status !== 200) return true;
    const { await_request }: Run = JSON.parse(response.text);
    return await_request?.message.parts[0]?.content === question;
  }

  #countResume({ headers }: Pick<WireResponse, 'headers'>, node: string): void {
    this.#ledger.resumes += 1;
    if (headers[nodeHeader] !== undefined && headers[nodeHeader] !== node) this.#ledger.resumesElsewhere += 1;
  }

  /** Cancels a run, until that is accepted or too late. */
  async #cancel(known: Known): Promise<void> {
    known.cancel = 'sent';
    for (;;) {
      const response = await this.#once(`/runs/${known.run_id}/cancel`, { method: 'POST' });
      if (response?.status === 202) {
        const node = response.headers[nodeHeader];
        this.#ledger.cancels += 1;
        if (node !== undefined && node !== known.mark?.split('.')[0]) this.#ledger.cancelsElsewhere += 1;
        known.cancel = 'accepted';
        return;
      }
      if (response?.status === 409 && response.text.includes('already')) return;
      if (response !== undefined) return this.#unexpected(`cancelling run ${known.run_id}`, response, response.text);
      await this.#pause();
    }
  }

  /** Whether no received event gives a reason why the run could be final. */
  #isOpen({ lines, cancel }: Known): boolean {
    return cancel === 'none' && !/^\{"type":"run\.(failed|cancelled)"/.test(lines.at(-1) ?? '');
  }

  #place({ run_id, order }: Known, text: string): string {
    return `run ${run_id} (${order.kind}), ${text}`;
  }

  #unexpected(request: string, { headers }: Pick<WireResponse, 'headers'>, text: string): void {
    this.#ledger.faults.add('an unexpected response', `${request}, ${headers[nodeHeader]}: ${text}`);
  }

  #pause(): Promise<void> {
    return sleep(50 + this.#dice.below(150));
  }
}

function unlessCut(error: unknown): undefined {
  if (!(error instanceof Cut)) throw error;
}

const resume = (text: string, mode: Mode): Sent => ({
  body: { mode, await_resume: { type: 'message', message: { parts: [{ content: text }] } } },
  slow: mode === 'sync',
});
