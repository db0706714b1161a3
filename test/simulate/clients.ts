import { runEventOf } from '../../src/core/recognize.ts';
import type { RunCreateRequest } from '../../src/schema/api.ts';
import type { RunEvent } from '../../src/schema/event.ts';
import type { ClientPlan } from './plan.ts';
import type { Random } from './random.ts';
import { Reader } from './reader.ts';
import type { Records, Reply, RunRecord } from './records.ts';
import { agentOf } from './script.ts';
import type { Answer, World } from './world.ts';

/** Attempts of a request with an Idempotency-Key that gets no response. */
const attempts = 6;

/** One client and its requests about its run. */
export class Client {
  readonly #world: World;
  readonly #records: Records;
  readonly #plan: ClientPlan;
  readonly #session_id: string;
  #replies = 0;
  #readers: Reader[] = [];
  /** Questions that it has replied to, by the number of their event. */
  readonly #answered = new Set<number>();
  #open = 0;

  constructor(world: World, records: Records, plan: ClientPlan, random: Random) {
    this.#world = world;
    this.#records = records;
    this.#plan = plan;
    this.#session_id = random.fork(plan.session === undefined ? plan.name : `session ${plan.session}`).uuid();
    world.ledger.name(this.#session_id, plan.session === undefined ? `its session` : `session ${plan.session}`);
    world.clock.at('world', plan.at, () => this.#go(this.#play()));
  }

  /** Whether it is done. */
  get done(): boolean {
    return this.#open === 0 && this.#readers.every((reader) => reader.done);
  }

  get readers(): readonly Reader[] {
    return this.#readers;
  }

  /** Starts a part of its work in parallel to the others. */
  #go(part: Promise<void>): void {
    this.#open += 1;
    part.then(
      () => {
        this.#open -= 1;
      },
      (error: unknown) =>
        this.#world.ledger.violate(
          'the simulation works',
          `${this.#plan.name}: ${error instanceof Error ? error.stack : error}`,
        ),
    );
  }

  async #play(): Promise<void> {
    const { key, cancelAfter, deletes, readers, mode } = this.#plan;
    if (this.#plan.ifBusy === 'interrupt') this.#records.interrupted.add(this.#session_id);
    const made = key?.twice ? await Promise.all([this.#create(), this.#create()]) : [await this.#create()];
    const begun = made.find((one) => one !== undefined);
    if (begun === undefined) return;
    const record = this.#records.of(begun.run_id, this.#plan);
    if (cancelAfter > 0) this.#go(this.#later(cancelAfter, () => this.#cancel(record)));
    if (deletes === 'early') this.#go(this.#later(cancelAfter + 200, () => this.#delete(record)));
    if (mode !== 'async') this.#read(record, begun.after, 'settled', false);
    this.#read(record, 0, 'final', true);
    for (let index = 0; index < readers; index += 1) this.#read(record, 0, 'final', false);
  }

  async #later(ms: number, work: () => Promise<void>): Promise<void> {
    await this.#world.clock.sleep('world', ms);
    await work();
  }

  /** Requests the run; with a key, until there is a response. */
  async #create(): Promise<{ run_id: string; after: number } | undefined> {
    const { name, script, mode, ifBusy, onDisconnect, key } = this.#plan;
    const input = JSON.stringify({ client: name, ifBusy, script });
    const request: RunCreateRequest = {
      agent_name: agentOf(script),
      input: [{ parts: [{ content: input }] }],
      session_id: this.#session_id,
      mode,
    };
    const options = { if_busy: ifBusy, on_disconnect: onDisconnect, ...(key && { idempotency_key: name }) };
    for (let attempt = 0; attempt < (key === undefined ? 1 : attempts); attempt += 1) {
      const answer = await this.#world.request(name, `create ${ifBusy}`, (node) => node.create(request, options));
      if (answer !== 'unknown' && 'value' in answer) return this.#created(answer.value);
      if (key === undefined) this.#records.refusedCreates.add(name);
      if (answer !== 'unknown' && answer.error.status < 500) return undefined;
      await this.#world.clock.sleep('world', 700);
    }
    return undefined;
  }

  #created({ run_id, after }: { run_id: string; after: number }): { run_id: string; after: number } {
    const { ledger, server } = this.#world;
    const { name, key } = this.#plan;
    ledger.name(run_id, `run of ${name}`);
    const record = this.#records.of(run_id, this.#plan);
    record.acknowledged = true;
    if (!server.rows.has(run_id) && !this.#records.isDeleted(record, this.#session_id))
      ledger.violate('what is acknowledged is durable', `${run_id} is acknowledged, and the store does not have it`);
    if (key === undefined) return { run_id, after };
    // The key of a deleted run is free again.
    const known = this.#records.byKey.get(name) ?? run_id;
    const first = server.rows.has(known) ? known : run_id;
    this.#records.byKey.set(name, first);
    if (first !== run_id) ledger.violate('one run for a key', `${name} got ${first} and ${run_id}`);
    return { run_id, after };
  }

  #read(record: RunRecord, after: number, until: 'settled' | 'final', acts: boolean): void {
    const { name, dropsAfter } = this.#plan;
    const reader = new Reader(this.#world, {
      name: `${name}, reader ${this.#readers.length + 1}`,
      run_id: record.run_id,
      after,
      until,
      dropsAfter,
      mayBeGone: () => this.#records.isDeleted(record, this.#session_id),
      onEvent: (id, line) => {
        if (!acts) return;
        const kind = runEventOf(line);
        if (kind === 'awaiting') this.#asked(record, id, line);
        else if (kind === 'completed' || kind === 'failed' || kind === 'cancelled') this.#go(this.#after(record));
      },
    });
    this.#readers = [...this.#readers, reader];
  }

  #asked(record: RunRecord, id: number, line: string): void {
    const { answers, thinks, raceBy } = this.#plan;
    if (answers === 'never' || this.#answered.has(id)) return;
    this.#answered.add(id);
    this.#go(this.#later(thinks, () => this.#answer(record)));
    if (answers === 'twice') this.#go(this.#later(thinks, () => this.#answer(record)));
    if (answers !== 'race') return;
    const question: string = JSON.parse(line).run.await_request.id;
    this.#go(
      this.#later(thinks - raceBy, () => (raceBy % 2 === 0 ? this.#leave(record, id, question) : this.#cancel(record))),
    );
  }

  /** Sends a reply. Without a response, it sends the reply again with its key, if it has one. */
  async #answer(record: RunRecord): Promise<void> {
    const { name, answers } = this.#plan;
    this.#replies += 1;
    const text = `${name}.${this.#replies}`;
    const reply: Reply = { text, outcome: 'unknown' };
    record.replies.push(reply);
    const input = { type: 'message', message: { parts: [{ content: text }] } };
    const options = answers === 'again' ? { idempotency_key: text } : {};
    for (let attempt = 0; attempt < (answers === 'again' ? 3 : 1); attempt += 1) {
      const asked = this.#question(record);
      let cameAt = 0;
      const noteCame = (): void => {
        cameAt = this.#last(record);
      };
      const answer = await this.#world.request(name, `resume with "${text}"`, (node) => {
        noteCame();
        return this.#world.server.observeReads(noteCame, () => node.resume(record.run_id, input, options));
      });
      if (answer !== 'unknown' && 'value' in answer)
        this.#world.invariants.tookReply(record.run_id, text, answer.value.after, cameAt);
      this.#resumed(record, reply, answer);
      this.#refused(record, reply, answer, asked);
      if (answers === 'again' && reply.outcome === 'unknown') await this.#world.clock.sleep('world', 500);
    }
  }

  #resumed(record: RunRecord, reply: Reply, answer: Answer<{ after: number }>): void {
    const { ledger } = this.#world;
    // The run may have been deleted meanwhile.
    if (answer === 'unknown' || ('error' in answer && this.#records.isDeleted(record, this.#session_id))) return;
    if ('value' in answer) {
      const { after } = answer.value;
      if (typeof reply.outcome === 'object' && reply.outcome.after !== after)
        ledger.violate(
          'one resume for a key',
          `"${reply.text}" was taken after event ${reply.outcome.after} and ${after}`,
        );
      if (reply.outcome === 'refused')
        ledger.violate('one resume for a key', `"${reply.text}" was refused, and then taken after event ${after}`);
      reply.outcome = { after };
    } else if (answer.error.status < 500) {
      if (typeof reply.outcome === 'object')
        ledger.violate('one resume for a key', `"${reply.text}" was taken, and then refused: ${answer.error.message}`);
      // The second attempt may be refused, because the first one was accepted without a response.
      else if (answer.error.status === 409 && this.#plan.answers !== 'again') reply.outcome = 'refused';
    }
  }

  /** The last event in the store. */
  #last({ run_id }: RunRecord): number {
    return this.#world.server.logs.get(run_id)?.length ?? 0;
  }

  /** The event with which the run asks its question, in the store; undefined for a run that does not await. */
  #question({ run_id }: RunRecord): number | undefined {
    const { server } = this.#world;
    const row = server.rows.get(run_id);
    // Without other nodes, only a process that has the run in memory takes a reply to one that is not durable.
    const canWait = row?.tier === 'durable' || !this.#world.alone;
    if (row?.status !== 'awaiting' || !canWait) return undefined;
    // A reply that comes later is refused, also before a sweep has ended the run.
    const { run }: RunEvent = JSON.parse(server.logs.get(run_id)?.[row.snapshot - 1] ?? '');
    const { expires_at = '\uffff' } = run.await_request ?? {};
    return expires_at > new Date().toISOString() ? row.snapshot : undefined;
  }

  #refused(record: RunRecord, { text }: Reply, answer: Answer<unknown>, asked: number | undefined): void {
    if (answer === 'unknown' || !('error' in answer) || answer.error.status >= 500) return;
    if (asked !== undefined && this.#question(record) === asked)
      this.#world.ledger.violate(
        'an open question takes a reply',
        `"${text}" was refused, while ${record.run_id} awaited it: ${answer.error.message}`,
      );
  }

  async #cancel(record: RunRecord): Promise<void> {
    record.cancelAsked = true;
    record.cancelAskedAsWhole = true;
    const answer = await this.#world.request(this.#plan.name, 'cancel', (node) => node.cancel(record.run_id));
    if (answer !== 'unknown' && 'value' in answer) record.cancelAcknowledged = true;
  }

  /** Cancels the run while it asks this question, the event `id`. */
  async #leave(record: RunRecord, id: number, question: string): Promise<void> {
    record.cancelAsked = true;
    const asked = this.#question(record);
    const answer = await this.#world.request(this.#plan.name, `leave question ${question}`, (node) =>
      node.cancel(record.run_id, question),
    );
    if (answer === 'unknown') return;
    if ('value' in answer) {
      record.cancelAcknowledged = true;
      record.left.push(id);
    } else if (asked === id && answer.error.status < 500 && this.#question(record) === id)
      this.#world.ledger.violate(
        'an open question can be left',
        `${record.run_id} refused it: ${answer.error.message}`,
      );
  }

  /** Its last requests, after the final event. */
  async #after(record: RunRecord): Promise<void> {
    const { deletes, name } = this.#plan;
    const { run_id } = record;
    const mayBeGone = (): boolean => this.#records.isDeleted(record, this.#session_id);
    const answer = await this.#world.request(name, 'look at the run', (node) => node.run(run_id));
    if (answer !== 'unknown' && 'error' in answer && answer.error.status < 500 && !mayBeGone())
      this.#world.ledger.violate('what is acknowledged is kept', `${run_id}: ${answer.error.message}`);
    if (answer !== 'unknown' && 'value' in answer) this.#compare(run_id, answer.value);
    if (deletes === 'run') await this.#delete(record);
    if (deletes !== 'session') return;
    this.#records.deletedSessions.add(this.#session_id);
    await this.#world.request(name, 'delete the session', (node) => node.removeSession(this.#session_id));
  }

  /** The Run of the response has to be that of the final event. */
  #compare(run_id: string, run: string): void {
    const last = this.#world.server.logs.get(run_id)?.at(-1) ?? '';
    if (last.endsWith(`"run":${run}}`)) return;
    this.#world.ledger.violate('the Run is what its log says', `${run_id} is ${run}, and its log ends ${last}`);
  }

  async #delete(record: RunRecord): Promise<void> {
    const { name } = this.#plan;
    record.deleteAsked = true;
    const answer = await this.#world.request(name, 'delete', (node) => node.remove(record.run_id));
    if (answer === 'unknown' || 'error' in answer) return;
    // A node may show the run until the store responds to its last write.
    let look: Answer<string> = 'unknown';
    for (let attempt = 0; attempt < 8; attempt += 1) {
      look = await this.#world.request(name, 'look for the deleted run', (node) => node.run(record.run_id));
      if (look !== 'unknown' && 'error' in look && look.error.status < 500) return;
      await this.#world.clock.sleep('world', 3_000);
    }
    if (look !== 'unknown' && 'value' in look)
      this.#world.ledger.violate('what is deleted is gone', `${record.run_id} is still answered`);
  }
}
