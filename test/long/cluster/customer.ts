import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Run } from '../../../src/index.ts';
import { Dice } from '../../support/dice.ts';
import { agentName, type Order } from './agents.ts';
import { byNode } from './balancer.ts';
import { type Known, type Ledger, questionOf, statusOf } from './ledger.ts';
import { Reader } from './reader.ts';
import { replyTo } from './speech.ts';
import { passed } from './torment.ts';
import { type Answer, Cut, Hung, type Sent, textOf, type Wire } from './wire.ts';

type Mode = 'async' | 'stream' | 'sync';

export interface CustomerOptions {
  readonly wire: Wire;
  readonly ledger: Ledger;
  readonly dice: Dice;
}

/** Somebody who makes runs, reads them, answers what they ask and cancels some: each request at whatever node. */
export class Customer {
  readonly #wire: Wire;
  readonly #ledger: Ledger;
  readonly #dice: Dice;

  constructor({ wire, ledger, dice }: CustomerOptions) {
    this.#wire = wire;
    this.#ledger = ledger;
    this.#dice = dice;
  }

  /** Stays until all of it is over. Orders that are given together are of one session, and take turns. */
  async order(orders: readonly Order[]): Promise<void> {
    const session_id = randomUUID();
    await Promise.all(orders.map((order) => this.#live(order, session_id, orders.length > 1)));
  }

  async #live(order: Order, session_id: string, enqueue: boolean): Promise<void> {
    const { known, stream } = await this.#create(order, session_id, enqueue);
    const doing: Promise<void>[] = [];
    const cancelAt = this.#dice.next() < 0.1 ? 1 + this.#dice.below(30) : Number.POSITIVE_INFINITY;
    const sees = (id: number, line: string, node: string): void => {
      if (id >= cancelAt && known.cancel === 'none') doing.push(this.#cancel(known));
      else if (known.cancel === 'none' && statusOf(line) === 'awaiting') doing.push(this.#answer(known, line, node));
    };
    const readers = [this.#reader(known, sees).follow(stream)];
    if (this.#dice.next() < 0.5) readers.push(this.#reader(known).follow());
    await Promise.all(readers);
    await Promise.all(doing);
  }

  #reader(known: Known, sees?: (id: number, line: string, node: string) => void): Reader {
    const dice = new Dice(this.#dice.below(2 ** 32));
    return new Reader(known, { wire: this.#wire, ledger: this.#ledger, dice, ...(sees && { sees }) });
  }

  /** With an Idempotency-Key, until it is answered; now and then twice at once, at two nodes. */
  async #create(
    order: Order,
    session_id: string,
    enqueue: boolean,
  ): Promise<{ known: Known; stream: IncomingMessage | undefined }> {
    const mode = this.#dice.of<Mode>('async', 'async', 'async', 'stream', 'sync');
    const body = {
      agent_name: agentName(order.kind),
      session_id,
      mode,
      input: [{ parts: [{ content: JSON.stringify(order) }] }],
    };
    const headers = { 'idempotency-key': order.key, ...(enqueue && { 'if-busy': 'enqueue' }) };
    const sent: Sent = { body, headers, slow: mode === 'sync' };
    const twice = mode === 'async' && this.#dice.next() < 0.15;
    const [response] = await Promise.all(
      [this.#send('/runs', sent), ...(twice ? [this.#send('/runs', sent)] : [])].map(async (sending) => {
        const answered = await sending;
        const run_id = String(answered.headers['run-id']);
        const known = this.#ledger.acknowledge(order, run_id, session_id);
        if (mode === 'stream') return { known, stream: answered };
        await textOf(answered).then((text) => this.#told(known, mode, text), unlessCut);
        return { known, stream: undefined };
      }),
    );
    if (response === undefined) throw new Error('nothing was sent');
    return response;
  }

  #told(known: Known, mode: Mode, text: string): void {
    const { run_id }: Run = JSON.parse(text);
    if (run_id !== known.run_id) this.#ledger.faults.add('a run was answered as another', `${known.run_id}: ${text}`);
    if (mode === 'sync') known.answers.push(text);
  }

  /** Sends until there is an answer with a 2xx. */
  async #send(path: string, sent: Sent): Promise<IncomingMessage> {
    for (;;) {
      const answer = await this.#attempt(() => this.#wire.open(path, sent));
      if (answer === undefined) continue;
      const { statusCode = 0 } = answer;
      if (statusCode >= 200 && statusCode < 300) return answer;
      const text = await textOf(answer).catch(unlessCut);
      if (statusCode !== 503 && statusCode !== 502) this.#unexpected(`POST ${path}`, answer, text ?? '');
      await this.#again();
    }
  }

  /** What a request comes to; undefined where it was cut. */
  async #attempt<T>(ask: () => Promise<T>): Promise<T | undefined> {
    try {
      return await ask();
    } catch (error) {
      if (error instanceof Hung) this.#ledger.faults.add('a request was not answered', error.message);
      unlessCut(error);
      await this.#again();
      return undefined;
    }
  }

  /** One request; undefined where nobody knows what came of it. */
  async #once(path: string, sent: Sent): Promise<Answer | undefined> {
    const answer = await this.#attempt(() => this.#wire.call(path, sent));
    return answer === undefined || answer.status === 503 || answer.status === 502 ? undefined : answer;
  }

  /** Answers a question: alone and with a key, or two at once, of whom one wins. */
  async #answer(known: Known, line: string, seenAt: string): Promise<void> {
    const question = questionOf(line);
    const index = Number(question.split('?')[1]);
    known.replies[index] ??= { sent: new Set(), taken: new Set() };
    // Long enough for some of them to have left memory.
    await passed(this.#dice.of(0, 0, this.#dice.below(1_200)));
    // Without a key, what a paused node was sent answers whatever the run asks by then: only where that is nothing more.
    const last = index === (known.order.kind === 'askTwice' ? 1 : 0);
    if (!last || this.#dice.next() < 0.6) return this.#alone(known, index, question, seenAt);
    const outcomes = await Promise.all(['a', 'b'].map((who) => this.#rival(known, index, replyTo(question, who))));
    const taken = outcomes.filter((outcome) => outcome === 'taken').length;
    if (taken === 2) this.#ledger.faults.add('two answers to one question were taken', this.#place(known, question));
    if (taken > 0 || known.cancel !== 'none') return;
    // Both were refused, although nobody else answers: that is only right where one was taken and cut.
    if (outcomes.every((outcome) => outcome === 'refused') && this.#alive(known))
      known.doubts.push(['nobody’s answer to a question was taken', this.#place(known, question)]);
    while ((await this.#rival(known, index, replyTo(question, 'a'))) === 'unknown') await this.#again();
  }

  async #alone(known: Known, index: number, question: string, seenAt: string): Promise<void> {
    const text = replyTo(question, 'a');
    const { sent, taken } = this.#reply(known, index);
    sent.add(text);
    for (;;) {
      const answer = await this.#once(`/runs/${known.run_id}`, {
        ...resume(text),
        headers: { 'idempotency-key': question },
      });
      if (answer?.status === 202) {
        this.#resumed(answer, seenAt);
        taken.add(text);
        return;
      }
      if (answer !== undefined) {
        if (this.#alive(known))
          known.doubts.push(['an answer was refused', `${this.#place(known, question)}: ${answer.text}`]);
        if (!(await this.#asks(known, question))) return;
      }
      await this.#again();
    }
  }

  async #rival(known: Known, index: number, text: string): Promise<'taken' | 'refused' | 'unknown'> {
    const { sent, taken } = this.#reply(known, index);
    sent.add(text);
    const answer = await this.#once(`/runs/${known.run_id}`, resume(text));
    if (answer === undefined) return 'unknown';
    if (answer.status === 409) return 'refused';
    if (answer.status !== 202) {
      this.#unexpected(this.#place(known, text), answer, answer.text);
      return 'refused';
    }
    this.#resumed(answer, known.mark?.split('.')[0] ?? '');
    taken.add(text);
    return 'taken';
  }

  /** Whether a run still asks that, as far as some node knows. */
  async #asks({ run_id }: Known, question: string): Promise<boolean> {
    const answer = await this.#once(`/runs/${run_id}`, {});
    if (answer?.status !== 200) return true;
    const { await_request }: Run = JSON.parse(answer.text);
    return await_request?.message.parts[0]?.content === question;
  }

  #resumed({ headers }: Answer, elsewhere: string): void {
    this.#ledger.resumes += 1;
    if (headers[byNode] !== elsewhere) this.#ledger.resumesElsewhere += 1;
  }

  #reply(known: Known, index: number) {
    const reply = known.replies[index];
    if (reply === undefined) throw new Error(`run ${known.run_id} did not ask ${index}`);
    return reply;
  }

  /** Until it is taken, or too late. */
  async #cancel(known: Known): Promise<void> {
    known.cancel = 'sent';
    for (;;) {
      const answer = await this.#once(`/runs/${known.run_id}/cancel`, { method: 'POST' });
      if (answer?.status === 202) {
        this.#ledger.cancels += 1;
        if (answer.headers[byNode] !== known.mark?.split('.')[0]) this.#ledger.cancelsElsewhere += 1;
        known.cancel = 'taken';
        return;
      }
      if (answer?.status === 409 && answer.text.includes('already')) return;
      if (answer !== undefined) return this.#unexpected(`cancelling run ${known.run_id}`, answer, answer.text);
      await this.#again();
    }
  }

  /** Whether there is no reason for a run to be over, as far as anybody was told. */
  #alive({ lines, cancel }: Known): boolean {
    return cancel === 'none' && !/^\{"type":"run\.(failed|cancelled)"/.test(lines.at(-1) ?? '');
  }

  #place({ run_id, order }: Known, what: string): string {
    return `run ${run_id} (${order.kind}), ${what}`;
  }

  #unexpected(what: string, { headers }: Pick<Answer, 'headers'> & { status?: number }, text: string): void {
    this.#ledger.faults.add('an answer that nobody expects', `${what}, ${headers[byNode]}: ${text}`);
  }

  #again(): Promise<void> {
    return passed(50 + this.#dice.below(150));
  }
}

function unlessCut(error: unknown): undefined {
  if (!(error instanceof Cut)) throw error;
}

const resume = (text: string): Sent => ({
  body: { mode: 'async', await_resume: { type: 'message', message: { parts: [{ content: text }] } } },
});
