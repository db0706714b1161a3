import { randomUUID } from 'node:crypto';
import { isFinal, type Run } from '../../../src/index.ts';
import { agentName, answerTo, newOrder, type Order } from './agents.ts';
import { asks, compare, type Known, type Ledger, questionOf, statusOf, Violation } from './ledger.ts';
import type { Random } from './random.ts';
import { type Answer, frames, get, request, type Sent, text, unexpected } from './wire.ts';
import { unlessCut, type World } from './world.ts';

const modes = ['async', 'stream', 'sync'] as const;
type Mode = (typeof modes)[number];

/** Somebody who uses the server: the connection may be cut at any moment, and a new one is made. */
export class Client {
  readonly #world: World;
  readonly #ledger: Ledger;
  readonly #random: Random;
  readonly #name: string;
  #made = 0;
  #session: string = randomUUID();

  constructor(world: World, ledger: Ledger, random: Random, name: string) {
    this.#world = world;
    this.#ledger = ledger;
    this.#random = random;
    this.#name = name;
  }

  /** Makes a run, or two that have to take turns, and stays until it is over. */
  async write(): Promise<void> {
    if (this.#random.chance(0.2)) this.#session = randomUUID();
    if (this.#random.chance(0.2)) await Promise.all([this.#one(true, true), this.#one(true, true)]);
    else await this.#one(this.#random.chance(0.5), this.#random.chance(0.2));
  }

  async #one(once: boolean, enqueue: boolean): Promise<void> {
    const order = newOrder(this.#random, `${this.#name}.${this.#made}`);
    this.#made += 1;
    const run = await this.#create(order, once, enqueue);
    if (run !== undefined) return this.#stay(run);
    // What nobody knows of may wait for an answer; nobody shall wait for it.
    this.#session = randomUUID();
  }

  /** Looks at what others have made. */
  async read(): Promise<void> {
    const recent = this.#ledger.recent(100);
    if (recent.length === 0) return this.write();
    const run = this.#random.pick(recent);
    try {
      if (this.#random.chance(0.4)) await this.#tail(run);
      else if (this.#random.chance(0.7)) await this.#audit(run);
      else await this.#list();
    } catch (error) {
      unlessCut(error);
    }
  }

  /** With an Idempotency-Key, until it is answered; without one, once, and who knows what came of it. */
  async #create(order: Order, once: boolean, enqueue: boolean): Promise<Known | undefined> {
    const mode = this.#random.pick(modes);
    const session_id = this.#session;
    const body = {
      agent_name: agentName(order.kind),
      session_id,
      mode,
      input: [{ parts: [{ content: JSON.stringify(order) }] }],
    };
    const headers = {
      ...(once && { 'idempotency-key': order.key }),
      ...(enqueue && { 'if-busy': 'enqueue' }),
    };
    for (;;) {
      try {
        const answer = await this.#request('/runs', { body, headers });
        const run_id = answer.response.headers.get('run-id');
        const expected = mode === 'async' ? 202 : 200;
        if (answer.response.status !== expected || run_id === null)
          throw await unexpected(this.#world, 'POST /runs', answer);
        const run = this.#ledger.acknowledge(run_id, session_id, order);
        await this.#answered(run, mode, answer, 0).catch(unlessCut);
        return run;
      } catch (error) {
        unlessCut(error);
        if (once) continue;
        this.#ledger.unanswered += 1;
        return undefined;
      }
    }
  }

  /** Follows a run, answers what it asks, cancels it maybe, until it is over. */
  async #stay(run: Known): Promise<void> {
    const cancelAt = this.#random.chance(0.08) ? this.#random.whole(1, 20) : Number.POSITIVE_INFINITY;
    for (;;) {
      try {
        if (run.latest !== undefined && isFinal(run.latest.run.status)) return;
        if (run.reach >= cancelAt && run.cancel !== 'taken') await this.#cancel(run);
        const after = run.reach;
        const question = run.cancel === 'none' ? await this.#question(run) : undefined;
        if (question === undefined) await this.#follow(run, after, cancelAt);
        else await this.#resume(run, question);
      } catch (error) {
        unlessCut(error);
      }
    }
  }

  /** What the run asks, where it was last seen to ask, and the question still stands. */
  async #question(run: Known): Promise<string | undefined> {
    const last = run.latest?.run;
    if (last?.status !== 'awaiting') return undefined;
    const now = await get<Run>(this.#world, `/runs/${run.run_id}`);
    return now.status === 'awaiting' && questionOf(now) === questionOf(last) ? questionOf(now) : undefined;
  }

  /** Reads on from an event until the run is over or asks, or the client has had enough of this connection. */
  async #follow(run: Known, after: number, enough = Number.POSITIVE_INFINITY): Promise<void> {
    const answer = await this.#stream(run, after);
    if (answer === undefined) return;
    const drop = this.#random.chance(0.2) ? after + this.#random.whole(1, 10) : Number.POSITIVE_INFINITY;
    let last = run.seen.get(after) ?? '';
    for await (const { id, line } of frames(this.#world, answer, after)) {
      this.#ledger.see(run, id, line);
      if (id >= drop || id === enough || asks(line)) return;
      last = line;
    }
    if (!isFinal(statusOf(last))) throw this.#ended(run, answer, last);
  }

  /** Opens the stream of a run after an event; undefined where there is nothing left to read. */
  async #stream({ run_id, seen }: Known, after: number): Promise<Answer | undefined> {
    if (after > 0) this.#ledger.reconnects += 1;
    const headers = { accept: 'text/event-stream', ...(after > 0 && { 'last-event-id': String(after) }) };
    const answer = await this.#request(`/runs/${run_id}/events`, { headers });
    if (answer.response.status === 200) return answer;
    if (answer.response.status !== 204)
      throw await unexpected(this.#world, `run ${run_id} after event ${after}`, answer);
    const line = seen.get(after);
    if (line === undefined || !isFinal(statusOf(line)))
      throw new Violation(`run ${run_id} had nothing after event ${after}: ${line}`);
    return undefined;
  }

  /** With an Idempotency-Key, until it is taken; without one, once: what came of it shows. */
  async #resume(run: Known, question: string): Promise<void> {
    const mode = this.#random.pick(modes);
    const once = this.#random.chance(0.5);
    const message = { parts: [{ content: answerTo(question) }] };
    const sent = {
      body: { mode, await_resume: { type: 'message', message } },
      ...(once && { headers: { 'idempotency-key': question } }),
    };
    for (;;) {
      try {
        const answer = await this.#request(`/runs/${run.run_id}`, sent);
        this.#ledger.resumes += 1;
        const { status } = answer.response;
        // An answer of ours was taken before, by a server that did not live to say so.
        if (status === 409 && !once) return void (await text(this.#world, answer));
        if (status !== (mode === 'async' ? 202 : 200))
          throw await unexpected(this.#world, `answering run ${run.run_id}`, answer);
        // Where it goes on is the server's to say: it may have spoken since it asked.
        return await this.#answered(run, mode, answer);
      } catch (error) {
        unlessCut(error);
        if (!once) return;
      }
    }
  }

  /** What the answer of a run that begins, or goes on, tells. */
  async #answered(run: Known, mode: Mode, answer: Answer, after?: number): Promise<void> {
    if (mode !== 'stream') {
      const body = await text(this.#world, answer);
      const { run_id, status }: Run = JSON.parse(body);
      if (run_id !== run.run_id) throw new Violation(`run ${run.run_id} was answered as ${run_id}`);
      if (mode === 'sync' && status !== 'awaiting' && !isFinal(status))
        throw new Violation(`a sync run was answered ${body}`);
      if (mode === 'sync') run.answers.push(body);
      return;
    }
    let last = '';
    for await (const { id, line } of frames(this.#world, answer, after)) {
      this.#ledger.see(run, id, line);
      last = line;
      if (this.#random.chance(0.02)) return;
    }
    if (!asks(last) && !isFinal(statusOf(last))) throw this.#ended(run, answer, last);
  }

  async #cancel(run: Known): Promise<void> {
    run.cancel = 'sent';
    const answer = await this.#request(`/runs/${run.run_id}/cancel`, { body: {} });
    const { status } = answer.response;
    if (status !== 202 && status !== 409) throw await unexpected(this.#world, `cancelling run ${run.run_id}`, answer);
    const body = await text(this.#world, answer);
    this.#ledger.cancels += 1;
    if (status === 202) run.cancel = 'taken';
    else if (!/is already/.test(body)) throw new Violation(`cancelling run ${run.run_id} answered ${body}`);
  }

  /** A reader of its own, from anywhere in a run to its end, over as many connections as that takes. */
  async #tail(run: Known): Promise<void> {
    let cursor = this.#random.whole(0, run.reach);
    for (;;) {
      try {
        const answer = await this.#stream(run, cursor);
        if (answer === undefined) return;
        for await (const { id, line } of frames(this.#world, answer, cursor)) {
          this.#ledger.see(run, id, line);
          cursor = id;
          if (isFinal(statusOf(line))) return;
          if (this.#random.chance(0.02)) break;
        }
      } catch (error) {
        unlessCut(error);
      }
    }
  }

  /** Whether a run is still there, with all that anybody saw of it. */
  async #audit(run: Known): Promise<void> {
    // Before the request: what is shown while it is under way need not be in its answer.
    const seen = [...run.seen];
    const { events } = await get<{ events: object[] }>(this.#world, `/runs/${run.run_id}/events`);
    for (const [id, line] of seen) compare(run, id, line, events[id - 1]);
    this.#ledger.audits += 1;
  }

  async #list(): Promise<void> {
    const known = this.#ledger.recent(1)[0];
    const path = this.#random.pick([
      '/runs?limit=50',
      '/runs?status=awaiting',
      `/runs?session_id=${known?.session_id}&limit=100`,
    ]);
    const { runs } = await get<{ runs: Run[] }>(this.#world, path);
    const ids = runs.map(({ run_id }) => run_id);
    if (ids.some((id, index) => index > 0 && id >= (ids[index - 1] ?? ''))) throw new Violation(`${path} lists ${ids}`);
    if (path.includes('session_id') && known !== undefined && !ids.includes(known.run_id)) {
      throw new Violation(`${path} does not list run ${known.run_id}`);
    }
  }

  /** A stream may end before its run only with its server. */
  #ended({ run_id }: Known, { life }: Answer, last: string): Error {
    return this.#world.broken(life, `a stream of run ${run_id} ended with ${last}`);
  }

  #request(path: string, sent: Sent): Promise<Answer> {
    this.#ledger.requests += 1;
    return request(this.#world, path, sent);
  }
}
