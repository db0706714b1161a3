import type { RunRow } from '../../src/core/ports/run-store.ts';
import { runEventOf } from '../../src/core/recognize.ts';
import { isFinal } from '../../src/core/run-state.ts';
import type { Event } from '../../src/schema/event.ts';
import type { Run } from '../../src/schema/run.ts';
import type { Plan } from './plan.ts';
import type { Records, RunRecord } from './records.ts';
import { type Act, allActs, type Script } from './script.ts';
import type { World } from './world.ts';

/** Runs that are unfinished when nothing is left that would end them. */
export function openRuns(world: World, now: string): RunRow[] {
  const rows = [...world.server.rows.values()].filter((row) => !isFinal(row.status));
  const waits = (row: RunRow): boolean => row.status === 'awaiting' && (row.due === null || row.due > now);
  const queues = (row: RunRow): boolean =>
    row.queued_at !== null && rows.some((other) => other.session_id === row.session_id && other.run_id < row.run_id);
  return rows.filter((row) => !waits(row) && !queues(row));
}

/** Judges each run at the end, by its log and by the responses that its clients got. */
export function judge(world: World, plan: Plan, records: Records): void {
  for (const [run_id, log] of world.server.logs) {
    const events = log.map((line): Event => JSON.parse(line));
    const final = events.at(-1);
    if (final === undefined || !('run' in final) || !isFinal(final.run.status)) continue;
    const script = scriptOf(world, run_id, plan);
    const record = records.runs.get(run_id);
    judgeEnd(world, plan, records, final.run, record, script);
    if (final.run.status === 'completed') judgeOutput(world, run_id, log, script.acts);
    const isInterrupted = records.interrupted.has(final.run.session_id ?? '');
    if (record !== undefined) judgeReplies(world, record, log, final.run, script.acts, isInterrupted);
  }
}

function scriptOf(world: World, run_id: string, plan: Plan): Script {
  const name = world.clientOf.get(run_id);
  const client = plan.clients.find((one) => one.name === name);
  if (client === undefined) throw new Error(`no client requested run ${run_id}`);
  return client.script;
}

/** Whether a client of its session deletes turns while the run may read them: its history is another one after a crash. */
export function historyMayChange(world: World, run_id: string, plan: Plan): boolean {
  const client = plan.clients.find(({ name }) => name === world.clientOf.get(run_id));
  const deletes = plan.clients.some((one) => one.deletes !== 'nothing' && one.session === client?.session);
  return deletes && allActs(scriptOf(world, run_id, plan).acts).some((act) => act.do === 'history');
}

const reasonOf = ({ error }: Run): string => {
  const data: unknown = error?.data;
  const reason = typeof data === 'object' && data !== null && 'reason' in data ? data.reason : error?.code;
  return `${String(reason)}: ${error?.message}`;
};

function judgeEnd(
  world: World,
  plan: Plan,
  records: Records,
  run: Run,
  record: RunRecord | undefined,
  { acts, durable }: Script,
): void {
  const { ledger, clientOf, invariants } = world;
  const { run_id, status, session_id = '' } = run;
  const kinds = new Set(allActs(acts).map((act) => act.do));
  const client = plan.clients.find(({ name }) => name === clientOf.get(run_id));
  if (record?.cancelAcknowledged && status !== 'cancelled')
    ledger.violate('a cancel is kept', `${run_id} was cancelled, its client was told so, and it is ${status}`);
  const undoneBy = invariants.undoneBy.get(run_id);
  if (undoneBy !== undefined && status === 'completed')
    ledger.violate('nothing compensates a run that goes on', `${run_id} is completed, and ${undoneBy} has undone it`);
  if (status === 'cancelled') {
    const asked = record?.cancelAsked || client?.onDisconnect !== 'continue' || records.interrupted.has(session_id);
    const withdrawn = client?.key === undefined && records.refusedCreates.has(client?.name ?? '');
    if (!asked && !withdrawn)
      ledger.violate('only runs with a request to cancel are cancelled', `${run_id} is cancelled without a request`);
  }
  if (run.parked !== undefined) ledger.violate('a replay says the same', `${run_id}: ${run.parked.reason}`);
  if (status !== 'failed') return;
  const reason = reasonOf(run);
  // A message may be removed while the history that names it is read.
  const own =
    historyMayChange(world, run_id, plan) || kinds.has('throw') || kinds.has('nonsense') || kinds.has('unstorable');
  if (/replay_diverged/.test(reason)) ledger.violate('a replay says the same', `${run_id}: ${reason}`);
  else if (/await_timeout|idle_timeout|run_timeout/.test(reason)) return;
  else if (own) return;
  else if (durable) ledger.violate('a durable run goes on', `${run_id}: ${reason}`);
  else if (plan.faults.length === 0) ledger.violate('a run fails for a reason', `${run_id}: ${reason}`);
}

/** The output of a completed run: everything of its script, each once, each branch in its order. */
function judgeOutput({ ledger }: World, run_id: string, log: readonly string[], acts: readonly Act[]): void {
  const text = partsOf(log);
  for (const act of allActs(acts)) {
    for (const marks of marksOf(act)) {
      const times = marks.reduce((sum, mark) => sum + text.split(mark).length - 1, 0);
      if (times !== 1)
        ledger.violate(
          'output is complete and not doubled',
          `${run_id}: ${act.do}#${act.tag}, ${marks.join(' or ')}, is in the log ${times} times`,
        );
    }
  }
}

/** The output of an agent, without the events that repeat it. */
const partsOf = (log: readonly string[]): string =>
  log.filter((line) => line.startsWith('{"type":"message.part"') || line.startsWith('{"type":"generic"')).join('\n');

/** What an act says. Of each list, one text is in the log, once. */
function marksOf(act: Act): string[][] {
  const { tag } = act;
  switch (act.do) {
    case 'say':
    case 'message':
    case 'state':
      return [[`[${act.do} ${tag}]`]];
    case 'history':
    case 'step':
      return [[`[${act.do} ${tag}=`]];
    case 'generic':
      return [[`"tag":"${tag}"`]];
    case 'pay':
      return [[`[pay ${tag}=`]];
    case 'ask':
    case 'hold':
      return [[`[reply ${tag}=`]];
    case 'talk':
      return [[`[reply ${tag}=`], ...Array.from({ length: act.values }, (_, index) => [`[talk ${tag}.${index}]`])];
    case 'race':
      return [[`[reply ${tag}=`, `[late ${tag}]`]];
    default:
      return [];
  }
}

function judgeReplies(
  world: World,
  record: RunRecord,
  log: readonly string[],
  run: Run,
  acts: readonly Act[],
  isInterrupted: boolean,
): void {
  const { ledger } = world;
  const { run_id } = record;
  const given = world.invariants.replies.get(run_id) ?? [];
  const parts = partsOf(log);
  const races = new Set(allActs(acts).flatMap((act) => (act.do === 'race' ? [act.tag] : [])));
  const isAnswered = (id: number): boolean => runEventOf(log[id] ?? '') === 'in-progress';
  // A run that another request has cancelled takes a cancel whatever it asks.
  const otherwise = isInterrupted || record.cancelAskedAsWhole || !record.left.every(isAnswered);
  for (const id of record.left) {
    if (isAnswered(id) && !otherwise)
      ledger.violate('a question is answered or left', `${run_id}: question ${questionAt(log, id)} was both`);
  }
  for (const { text, outcome } of record.replies) {
    const got = given.filter((one) => one.text === text);
    const times = parts.split(`=${text}]`).length - 1;
    if (times > 1) ledger.violate('a reply is given once', `${run_id}: "${text}" is in the log ${times} times`);
    if (outcome === 'refused' && got.length > 0)
      ledger.violate('a reply is given once', `${run_id}: "${text}" was refused, and the agent got it`);
    if (typeof outcome !== 'object') continue;
    const asked = questionAt(log, outcome.after);
    const wrong = got.find(({ tag }) => tag !== asked);
    if (wrong !== undefined)
      ledger.violate(
        'a reply goes to its question',
        `${run_id}: "${text}" answers question ${asked}, and ${wrong.tag} got it`,
      );
    if (run.status === 'completed' && got.length === 0 && !races.has(asked ?? ''))
      ledger.violate(
        'an acknowledged reply is given',
        `${run_id}: "${text}", for question ${asked}, never came to its agent`,
      );
  }
}

/** The tag of the question that a run asked at that event of its log. */
function questionAt(log: readonly string[], after: number): string | undefined {
  for (let id = after; id > 0; id -= 1) {
    const line = log[id - 1] ?? '';
    const kind = runEventOf(line);
    if (kind === undefined) continue;
    return kind === 'awaiting' ? /question (\w+)/.exec(line)?.[1] : undefined;
  }
  return undefined;
}
