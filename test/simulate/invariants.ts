import { lastAfter, type Outcome, type RunRow, type Write } from '../../src/core/ports/run-store.ts';
import { runEventOf } from '../../src/core/recognize.ts';
import { messagesOf } from '../../src/core/request.ts';
import { isFinal } from '../../src/core/run-state.ts';
import type { Life, Watch } from './agents.ts';
import type { Clock, Owner } from './clock.ts';
import type { Conditions } from './faults.ts';
import type { Ledger } from './ledger.ts';
import type { Audit, StoreServer } from './sim-store.ts';

/** Milliseconds in which a node without faults has to learn that it no longer owns a run. */
const hearingTime = 6_000;

type IfBusy = 'parallel' | 'enqueue' | 'reject' | 'interrupt';

/** The position of a run in its session, by the order of the store's writes. */
interface Turn {
  readonly run_id: string;
  readonly session_id: string;
  readonly ifBusy: IfBusy;
  readonly madeAt: number;
  begun: boolean;
}

/**
 * Invariants that have to hold after every step, despite all faults. They observe each write of the store's server, the
 * actions of agents, and the events that readers get.
 */
export class Invariants implements Audit, Watch {
  readonly #clock: Clock;
  readonly #ledger: Ledger;
  readonly #server: StoreServer;
  readonly #conditions: Conditions;
  /** Whether nothing fails: then each run stays on its node while its agent works. */
  readonly #isCalm: boolean;
  /** The steps whose work has begun, by run. */
  readonly #worked = new Set<string>();
  /** By run and epoch, the node whose output the log has. */
  readonly #writers = new Map<string, Owner>();
  /** The newest epoch with which a node has taken a run over. */
  readonly #taken = new Map<string, number>();
  /** Since when a run has its epoch, or is final. */
  readonly #since = new Map<string, number>();
  readonly #turns = new Map<string, Turn>();
  readonly #lives = new Set<Life>();
  readonly #epochs = new Map<Life, number>();
  /** Lives whose node has learnt that they are fenced, and the step in which it did. */
  readonly #fenced = new Map<Life, number>();
  readonly #disturbed = new Map<Owner, number>();
  /** By run, the steps of which the journal has the end. */
  readonly #done = new Set<string>();
  /** By run and effect, the key that it used first. */
  readonly #keys = new Map<string, string>();
  /** By run, the life that has undone something. */
  readonly undoneBy = new Map<string, string>();
  #values = 0;
  /** When the store took a write. */
  lastWrite = 0;
  /** The client that requested each run: it is in the run's input. */
  readonly clients = new Map<string, string>();
  /** By run, the replies that its agents got: tag, text and life. */
  readonly replies = new Map<string, { life: number; tag: string; text: string }[]>();

  constructor(clock: Clock, ledger: Ledger, server: StoreServer, conditions: Conditions, isCalm: boolean) {
    this.#clock = clock;
    this.#ledger = ledger;
    this.#server = server;
    this.#conditions = conditions;
    this.#isCalm = isCalm;
  }

  committing(): void {}

  taken(node: Owner, write: Write, before: RunRow | undefined): void {
    this.lastWrite = this.#clock.now;
    const { row, lines } = write;
    const last = lastAfter(write);
    const kinds = lines.map((line) => runEventOf(line) ?? 'output');
    this.#ledger.record(row.run_id, `${node} writes ${row.status}, epoch ${row.epoch}, to ${last}: ${kinds.join(' ')}`);
    this.#checkRow(write, before);
    this.#checkWriter(node, write, kinds);
    if (write.from !== undefined || before === undefined) this.#taken.set(`${node} ${row.run_id}`, row.epoch);
    // A node takes a run again whose lease has ended. The life of the run goes on under the new epoch.
    for (const life of this.#lives)
      if (life.run_id === row.run_id && life.node === node && this.#epochs.get(life) === write.from)
        this.#epochs.set(life, row.epoch);
    if (before === undefined || row.epoch !== before.epoch || isFinal(row.status))
      this.#since.set(row.run_id, this.#clock.now);
    for (const line of write.journal ?? [])
      for (const [, step] of line.matchAll(/"step":"([^"#]+)#\d+","done":true/g))
        this.#done.add(`${row.run_id} ${step}`);
    this.#checkTurn(write, before);
    if (row.status === 'cancelled' && before?.status !== 'created') this.#checkStopped(node, row.run_id);
  }

  /** A cancel lets the agent stop, on whatever node it came, once the store knows that the agent has begun. */
  #checkStopped(node: Owner, run_id: string): void {
    for (const life of this.#lives)
      if (this.#isCalm && life.run_id === run_id && life.node !== node)
        this.#ledger.violate(
          'an agent stops before its run is cancelled',
          `${node} ends ${run_id}, while life ${life.number} works on ${life.node}`,
        );
  }

  #checkRow({ row, lines, expect, from }: Write, before: RunRow | undefined): void {
    const { run_id } = row;
    const last = lastAfter({ expect, lines });
    const log = this.#server.logs.get(run_id) ?? [];
    const wrong = (what: string): void => this.#ledger.violate('the log is whole', `${run_id}: ${what}`);
    if (expect !== (before?.last ?? 0)) wrong(`event ${expect + 1} follows event ${before?.last ?? 0}`);
    if (log.length !== last) wrong(`the write ends with event ${last}, the log has ${log.length}`);
    if (before !== undefined && isFinal(before.status)) wrong(`something follows the final event, ${before.status}`);
    if (before !== undefined && (from ?? row.epoch) !== before.epoch)
      this.#ledger.violate(
        'one execution writes',
        `${run_id}: a write of epoch ${from ?? row.epoch} is taken in epoch ${before.epoch}`,
      );
    if (before?.status === 'cancelling' && row.status !== 'cancelling' && row.status !== 'cancelled')
      this.#ledger.violate('a cancel is kept', `${run_id} goes from cancelling to ${row.status}`);
    lines.forEach((line, index) => {
      const kind = runEventOf(line);
      const final = kind === 'completed' || kind === 'failed' || kind === 'cancelled';
      if (final && index < lines.length - 1) wrong('something follows the final event');
      if (final && row.status !== kind) wrong(`the row says ${row.status}, the last event ${kind}`);
    });
    if (isFinal(row.status) && (runEventOf(lines.at(-1) ?? '') !== row.status || row.finished_at === null))
      wrong(`the row is ${row.status} without its event`);
  }

  /** Of two simultaneous executions of a run, only one writes: the output of one epoch comes from one node. */
  #checkWriter(node: Owner, { row }: Write, kinds: readonly string[]): void {
    if (!kinds.includes('output')) return;
    const key = `${row.run_id} ${row.epoch}`;
    const writer = this.#writers.get(key) ?? node;
    this.#writers.set(key, writer);
    if (writer !== node)
      this.#ledger.violate(
        'one execution writes',
        `${row.run_id}: ${writer} and ${node} write under epoch ${row.epoch}`,
      );
  }

  #checkTurn({ row, input }: Write, before: RunRow | undefined): void {
    const { run_id, session_id } = row;
    let turn = this.#turns.get(run_id);
    if (turn === undefined) {
      const { client, ifBusy }: { client: string; ifBusy: IfBusy } = JSON.parse(
        messagesOf(input ?? [])[0]?.parts[0]?.content ?? '{}',
      );
      this.clients.set(run_id, client);
      turn = { run_id, session_id, ifBusy, madeAt: this.#clock.steps, begun: false };
      this.#turns.set(run_id, turn);
    }
    const begins = !turn.begun && row.queued_at === null && row.status !== 'cancelling' && !isFinal(row.status);
    turn.begun ||= row.queued_at === null;
    if (!begins || turn.ifBusy === 'parallel') return;
    for (const other of this.#turns.values()) this.#checkPair(turn, other, before === undefined);
  }

  #checkPair(turn: Turn, other: Turn, atOnce: boolean): void {
    const row = this.#server.rows.get(other.run_id);
    if (other === turn || other.session_id !== turn.session_id || row === undefined || isFinal(row.status)) return;
    const pair = `${turn.run_id} (${turn.ifBusy}) begins, and ${other.run_id} (${other.ifBusy}) is ${row.status}`;
    const isFirst = other.ifBusy !== 'parallel' || other.madeAt < turn.madeAt;
    if (other.begun && isFirst) this.#ledger.violate('queued runs do not overlap', pair);
    if (!other.begun && !atOnce && other.run_id < turn.run_id && other.madeAt < turn.madeAt)
      this.#ledger.violate('queued runs begin in order', `${pair} and older`);
  }

  refused(node: Owner, write: Write, outcome: Outcome): void {
    const { run_id, epoch } = write.row;
    const why = typeof outcome === 'string' ? outcome : 'targets' in outcome ? 'of other targets' : 'rejected';
    this.#ledger.record(run_id, `${node} hears that its write is ${why} (epoch ${epoch}, after ${write.expect})`);
    const isWork = write.from === undefined && write.lines.some((line) => runEventOf(line) === undefined);
    if (outcome !== 'fenced' || !isWork) return;
    for (const life of this.#lives)
      if (life.run_id === run_id && life.node === node && !this.#fenced.has(life))
        this.#fenced.set(life, this.#clock.steps);
  }

  removed(what: string): void {
    const id = what.split(' ')[1];
    this.#ledger.record('store', `removes ${what}`);
    for (const row of this.#server.rows.values())
      if ((row.run_id === id || row.session_id === id) && !isFinal(row.status))
        this.#ledger.violate('what is going on is not deleted', `${what}: run ${row.run_id} is ${row.status}`);
  }

  began(life: Life): void {
    this.#lives.add(life);
    this.#epochs.set(life, this.#taken.get(`${life.node} ${life.run_id}`) ?? 1);
    this.#ledger.record(life.run_id, `life ${life.number} of its agent begins on ${life.node}`);
  }

  ended(life: Life): void {
    this.#lives.delete(life);
    this.#ledger.record(life.run_id, `life ${life.number} of its agent is ended on ${life.node}`);
  }

  worked(life: Life, tag: string): string {
    this.#ledger.record(life.run_id, `life ${life.number} does ${tag} on ${life.node}`);
    const where = `${tag} of ${life.run_id}, life ${life.number} on ${life.node}`;
    if (life.over) this.#ledger.violate('no work begins after the end', `${where}: the run is over there`);
    if ((this.#fenced.get(life) ?? Infinity) < this.#clock.steps)
      this.#ledger.violate('no work begins after the end', `${where}: the node knows that it is fenced`);
    const mark = `[${tag.replace('rest of ', '')}=`;
    // A node that was paused cannot know at once that it is fenced; the store refuses its writes.
    const isOwn = (this.#epochs.get(life) ?? 0) >= (this.#server.rows.get(life.run_id)?.epoch ?? 0);
    const step = `${life.run_id} ${tag.replace('rest of ', '')}`;
    if (life.durable && isOwn && this.#done.has(step))
      this.#ledger.violate('a durable step is done once', `${where}: its end is in the journal`);
    if (this.#isCalm && this.#worked.has(step))
      this.#ledger.violate('work is repeated only after a fault', `${where}: it has begun before`);
    this.#worked.add(step);
    if (life.durable && isOwn && this.#server.logs.get(life.run_id)?.some((line) => line.includes(mark)))
      this.#ledger.violate('a durable step is done once', `${where}: its value is in the log`);
    this.#values += 1;
    return `v${this.#values}`;
  }

  paid(life: Life, tag: string, key: string): void {
    const { run_id } = life;
    this.#ledger.record(run_id, `life ${life.number} pays ${tag} with ${key} on ${life.node}`);
    // A run that is not durable may begin anew where it died before its first commit.
    if (!life.durable) return;
    const effect = `${run_id} ${tag}`;
    const before = this.#keys.get(effect) ?? key;
    this.#keys.set(effect, before);
    if (before !== key)
      this.#ledger.violate(
        'an effect that is repeated uses the same values',
        `${run_id} pays ${tag} with ${key} in life ${life.number}, and paid with ${before} before`,
      );
  }

  undone(life: Life, tag: string): void {
    this.#ledger.record(life.run_id, `life ${life.number} undoes ${tag} on ${life.node}`);
    this.undoneBy.set(life.run_id, `life ${life.number} on ${life.node}`);
  }

  replied(life: Life, tag: string, text: string): void {
    this.#ledger.record(life.run_id, `life ${life.number} gets the reply "${text}" to question ${tag}`);
    const all = this.replies.get(life.run_id) ?? [];
    this.replies.set(life.run_id, all);
    if (all.some((one) => one.life === life.number && one.text === text))
      this.#ledger.violate('a reply is given once', `${life.run_id} gets "${text}" twice in life ${life.number}`);
    all.push({ life: life.number, tag, text });
  }

  /** A reply was taken after an event, and it came when the log ended with the event `last`. */
  tookReply(run_id: string, text: string, after: number, last: number): void {
    const events = this.#server.logs.get(run_id)?.slice(0, after) ?? [];
    const asked = events.findLastIndex((line) => runEventOf(line) === 'awaiting') + 1;
    if (asked > last)
      this.#ledger.violate(
        'a reply is for a question that was asked before',
        `"${text}" to ${run_id} came at event ${last}, and was taken for the question that is event ${asked}`,
      );
  }

  /** A reader gets events. */
  shown(reader: string, run_id: string, seen: number, id: number, line: string): void {
    const log = this.#server.logs.get(run_id) ?? [];
    const wrong = (what: string): void =>
      this.#ledger.violate('readers see the log', `${reader} of ${run_id}: ${what}`);
    if (id !== seen + 1) wrong(`event ${id} follows event ${seen}`);
    if (id > log.length) wrong(`event ${id} is shown and is not durable`);
    else if (log[id - 1] !== line) wrong(`event ${id} is ${line}, and in the log ${log[id - 1]}`);
  }

  /** A node had a fault that is not a condition in force. */
  disturbed(node: Owner): void {
    this.#disturbed.set(node, this.#clock.now);
  }

  /** A node without faults has to drop a run that it no longer owns. Checked every second. */
  checkLives(isUp: (node: Owner) => boolean): void {
    const { now } = this.#clock;
    for (const life of this.#lives) {
      const { run_id, node } = life;
      const row = this.#server.rows.get(run_id);
      const since = this.#since.get(run_id) ?? now;
      if (row === undefined || !isUp(node) || now - since < hearingTime) continue;
      if (now - (this.#disturbed.get(node) ?? -Infinity) < hearingTime || !this.#conditions.quietFor(node, hearingTime))
        continue;
      const epoch = this.#epochs.get(life) ?? 0;
      if (isFinal(row.status) || row.epoch > epoch)
        this.#ledger.violate(
          'a node hears that a run is no longer its own',
          `life ${life.number} of ${run_id} (epoch ${epoch}) goes on at ${node}; since ${now - since} ms it is ${row.status} under epoch ${row.epoch}`,
        );
    }
  }
}
