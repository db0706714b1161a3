import { encode } from '../../core/encode.ts';
import { fail } from '../../core/errors.ts';
import { fold } from '../../core/fold.ts';
import { checkContentTypes } from '../../core/messages.ts';
import type { RunRow } from '../../core/ports/run-store.ts';
import { operator, ownerOf, sessionKey } from '../../core/principal.ts';
import { messagesOf } from '../../core/request.ts';
import { isFinal } from '../../core/run-state.ts';
import type { Event } from '../../schema/event.ts';
import type { AwaitRequest, Run } from '../../schema/run.ts';
import { isWithin } from '../execution/scope.ts';
import { type Delivery, type JournalEntry, journalOf } from '../log/journal.ts';
import { changeOf, RunLog } from '../log/run-log.ts';
import { parseLine, readLines } from '../log/stored-run.ts';
import type { HistoryMark } from '../sessions.ts';
import {
  type AcceptedRun,
  checkRoom,
  newRow,
  newRun,
  newSessionId,
  type RunOptions,
  startWhenDurable,
} from './create.ts';
import { type IdempotentRequest, idempotentRequest } from './idempotency.ts';
import type { RunServices } from './run-services.ts';

/**
 * Makes a run that repeats a source run up to an event, and then goes on live. Its log begins with the events of the source
 * up to that event. Its journal begins with what the agent had received until then. So the new run is entered like a run whose
 * process died at that moment: a step whose value is in the journal is not done again. The new run has a session of its own.
 * @throws RivuletError `run_unknown`, `agent_unknown`, `owner_differs`, `not_repeatable`, `validation_failed`,
 * `content_type_refused`, `log_removed`, `log_damaged`, `idempotency_key_reused`, `too_busy`, `store_failed`, `store_unavailable`
 */
export async function runAgain(
  services: RunServices,
  run_id: string,
  after: number,
  runOptions: RunOptions,
): Promise<AcceptedRun> {
  const { idempotency_key, principal } = runOptions;
  const key = idempotentRequest(`again ${run_id}`, principal, idempotency_key, { after });
  return services.idempotency.deduplicate(
    key,
    async ({ run_id, after }) => ({ run_id, run: await services.lookup.json(run_id), after }),
    (key) => repeat(services, run_id, after, runOptions, key),
  );
}

async function repeat(
  services: RunServices,
  run_id: string,
  after: number,
  runOptions: RunOptions,
  key: IdempotentRequest | undefined,
): Promise<AcceptedRun> {
  checkRoom(services);
  const { store, executions, commits, idempotency } = services;
  const source = await store.run(run_id);
  if (source === undefined) throw fail('run_unknown', run_id);
  const agent = executions.registry.get(source.agent_name);
  const owner = ownerOf(runOptions.principal ?? operator);
  if (source.owner !== owner) throw fail('owner_differs', run_id);
  if (after > 1 && !(source.tier === 'durable' && agent.options.durable === true))
    throw fail('not_repeatable', run_id, after, source.agent_name);
  if (after > Math.max(source.last, 1)) throw fail('validation_failed', 'after', `the run has ${source.last} events`);
  const input = await store.input(run_id);
  if (input === undefined) throw fail('run_unknown', run_id);
  const messages = messagesOf(input);
  checkContentTypes(agent.manifest.name, agent.manifest.input_content_types ?? ['*/*'], messages);

  const { events, journal } = after > 1 ? await recordedUntil(services, source, after) : nothing;
  const now = executions.now();
  const trace = executions.traces?.requested(runOptions.trace, null) ?? null;
  const session_id = sessionKey(owner, newSessionId(services));
  const row = newRow({ agent, input: messages, owner, session_id, now, targets: null, runOptions, trace }, false);
  const copied = await executions.sessions.copyExtras(source, row, marksIn(journal));
  const log = new RunLog(commits.of(row.run_id), row, { input });
  log.attach({ ...copied, ...idempotency.keyExtras(key, row.run_id, 0, now) });
  const run = write(log, newRun(row), events, journal, now);
  await startWhenDurable(services, { key, if_busy: 'parallel' }, row, log.flushed());
  return { run_id: row.run_id, run: JSON.stringify(run), after: 0 };
}

/** A part of what a run has recorded: its events after the first one, and its journal. */
interface Recorded {
  readonly events: readonly Event[];
  readonly journal: readonly JournalEntry[];
}

const nothing: Recorded = { events: [], journal: [] };

/**
 * What a run had recorded when it appended an event. The final event is left out, so that the agent comes to its end again. A
 * cancel, and all that followed from it, is left out as well.
 */
async function recordedUntil({ store }: RunServices, source: RunRow, after: number): Promise<Recorded> {
  const { run_id, status, last } = source;
  const beforeEnd = isFinal(status) ? last - 1 : last;
  const [lines, all] = await Promise.all([
    readLines(store, { ...source, last: Math.min(after, beforeEnd) }, 1),
    journalOf(store, run_id),
  ]);
  const events = lines.map((line) => parseLine<Event>(run_id, line));
  // An agent that completes ends its open message and the run at once.
  const isClosed = status === 'completed' && after >= beforeEnd && events.at(-1)?.type === 'message.completed';
  if (isClosed && all.every(({ at }) => at < beforeEnd)) events.pop();
  // What the agent got after an event has the id of that event.
  const entries = all.filter(({ at }) => at < after);
  const cancelled = entries.findIndex((entry) => 'cancelled' in entry);
  const before = cancelled < 0 ? entries : entries.slice(0, cancelled);
  return { events, journal: status === 'failed' && after === last ? withoutLastErrors(before) : before };
}

/** Where a run failed because steps did, these steps are done again, and so are the steps in their work that failed before. */
function withoutLastErrors(journal: readonly JournalEntry[]): JournalEntry[] {
  const entries = [...journal];
  const removed: string[] = [];
  for (let index = entries.length - 1; index >= 0; index -= 1) {
    const entry = entries[index];
    // Such as the usage in the work of a step that has failed.
    if (removed.length > 0 && entry !== undefined && ('usage' in entry || 'beside' in entry)) continue;
    if (entry === undefined || !('give' in entry)) break;
    const { give } = entry;
    const isDoneAgain = (one: Delivery): boolean =>
      'error' in one && (index === entries.length - 1 || removed.some((step) => isWithin(step, one.step)));
    const end = give.findLastIndex((one) => !isDoneAgain(one)) + 1;
    for (const one of give.slice(end)) if ('step' in one) removed.push(one.step);
    entries[index] = { ...entry, give: give.slice(0, end) };
    if (end > 0) break;
  }
  return entries.filter((entry) => !('give' in entry) || entry.give.length > 0);
}

/** The extents of histories of the session that the agent has read. */
const marksIn = (journal: readonly JournalEntry[]): HistoryMark[] =>
  journal
    .flatMap((entry) => ('give' in entry ? entry.give : []))
    .flatMap((delivery) => ('value' in delivery && historyStep.test(delivery.step) ? delivery.value : []))
    .filter((value): value is HistoryMark => typeof value === 'object' && value !== null && 'count' in value);

const historyStep = /(^| )session\.history#\d+$/;

/**
 * Appends what is repeated to the log of the new run, each line of the journal after the event that it follows. The log may
 * become several writes, and a crash may come between them. Returns the Run.
 */
function write(
  log: RunLog,
  created: Run,
  events: readonly Event[],
  journal: readonly JournalEntry[],
  now: string,
): Run {
  const append = (event: Event): void =>
    log.append(encode(event), 'run' in event ? changeOf(event.run, now) : undefined);
  const entries = [...journal];
  const { run_id, session_id, created_at } = created;
  append({ type: 'run.created', run: created });
  let run = structuredClone(created);
  for (const event of events) {
    while (entries[0] !== undefined && entries[0].at <= log.row.last) attach(log, entries.shift());
    const own: Event =
      'run' in event
        ? {
            ...event,
            run: {
              ...event.run,
              run_id,
              ...(session_id !== undefined && { session_id }),
              created_at,
              ...asked(event.run, now),
            },
          }
        : event;
    append(own);
    run = fold(run, structuredClone(own));
  }
  for (const entry of entries) attach(log, entry);
  return run;
}

/** Without the time that the source has worked: the new run has its own limit of time. */
function attach(log: RunLog, entry: JournalEntry | undefined): void {
  if (entry === undefined) return;
  const { ms: _, ...rest } = entry;
  log.attach({ journal: [JSON.stringify(rest)] });
}

/** A question that is open has as much time for its reply as it had when it was asked. */
function asked({ await_request }: Run, now: string): { await_request?: AwaitRequest } {
  if (await_request?.expires_at === undefined) return {};
  const { message, expires_at } = await_request;
  const time = Math.max(0, Date.parse(expires_at) - Date.parse(message.created_at ?? now));
  return { await_request: { ...await_request, expires_at: new Date(Date.parse(now) + time).toISOString() } };
}
