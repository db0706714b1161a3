import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** A former defect of the engine as changes of its source, and the invariants that have to notice it. */
export interface Mutation {
  readonly name: string;
  readonly changes: readonly Change[];
  readonly noticed: readonly string[];
}

interface Change {
  readonly file: string;
  /** Occurs in the file once. */
  readonly find: string;
  readonly replace: string;
}

export const mutations: readonly Mutation[] = [
  {
    name: 'a cancel takes the run over and ends it in two writes, between which it can be resumed',
    changes: [
      {
        file: 'src/engine/runs/cancel.ts',
        find: `const outcome = await commits
      .of(end.row.run_id)
      .commitOne(end, () => onStoredRunEnded(services, rowAfter(end), error));`,
        replace: `const endInTwo = async () => {
            const seized = { ...row, epoch: row.epoch + 1, status: 'cancelling' as const };
            const [outcome] = await services.store.commit([{ row: seized, from: row.epoch, expect: row.last, lines: [] }]);
            if (outcome === 'taken') await services.store.commit([endingWrite(seized, said, executions.now())]);
            onStoredRunEnded(services, rowAfter(end));
            return outcome;
          };
          const outcome =
            error === undefined
              ? await endInTwo()
              : await commits.of(end.row.run_id).commitOne(end, () => onStoredRunEnded(services, rowAfter(end), error));`,
      },
      {
        file: 'src/engine/runs/resume.ts',
        find: "const awaits = ({ status }: RunRow): boolean => status === 'awaiting';",
        replace: "const awaits = ({ status }: RunRow): boolean => status === 'awaiting' || status === 'cancelling';",
      },
    ],
    noticed: ['a cancel is kept'],
  },
  {
    name: 'a cancel for a question that is left is for whatever its run asks or does',
    changes: [
      { file: 'src/engine/runs/cancel.ts', find: 'checkAsks(execution.run, question);', replace: '' },
      { file: 'src/engine/runs/cancel.ts', find: 'checkAsks(known.run, question);', replace: '' },
      { file: 'src/engine/runs/forward.ts', find: ' && asks(execution.run, question)', replace: '' },
    ],
    noticed: ['a question is answered or left'],
  },
  {
    name: 'a reply gives up after any write that comes before it',
    changes: [
      {
        file: 'src/engine/runs/resume.ts',
        find: 'return accepted ?? next;',
        replace: "if (accepted === undefined) throw fail('conflict', run_id);\n  return accepted;",
      },
    ],
    noticed: ['an open question takes a reply'],
  },
  {
    name: 'a request that fails with 503 withdraws its run although it has an Idempotency-Key',
    changes: [
      {
        file: 'src/engine/runs/create.ts',
        find: 'withdrawn = key === undefined;',
        replace: 'withdrawn = true;',
      },
    ],
    noticed: ['only runs with a request to cancel are cancelled'],
  },
  {
    name: 'a context begins work for a run that is final or fenced',
    changes: [
      {
        file: 'src/engine/execution/context.ts',
        find: 'if (runSignal.closing === undefined) return work();',
        replace: 'if (Date.now() > 0) return work();',
      },
    ],
    noticed: ['no work begins after the end'],
  },
  {
    name: 'a node that takes a run over goes on without the last line of its journal',
    changes: [
      {
        file: 'src/engine/runs/executor.ts',
        find: '    journalOf(store, run_id),\n    store.input(run_id),',
        replace: '    journalOf(store, run_id).then((all) => all.slice(0, -1)),\n    store.input(run_id),',
      },
      {
        file: 'src/engine/runs/executor.ts',
        find: "if (dispatcher.shared && row.status !== 'created') {",
        replace: 'if (executions === undefined) {',
      },
    ],
    noticed: ['a durable step is done once'],
  },
  {
    name: 'work begins before what it uses is durable',
    changes: [
      {
        file: 'src/engine/execution/feed.ts',
        find: 'if (this.#durable >= needed && this.hold.holds',
        replace: 'if (this.hold.holds',
      },
    ],
    noticed: ['an effect that is repeated uses the same values'],
  },
  {
    name: 'a run that leaves its process ends what its agent waits for',
    changes: [{ file: 'src/engine/execution/execution.ts', find: "if (closing.as !== 'left') {", replace: '{' }],
    noticed: ['nothing compensates a run that goes on'],
  },
  {
    name: 'an execution that is fenced goes on',
    changes: [
      {
        file: 'src/engine/execution/execution.ts',
        find: 'abandon(error: Error, continues: Continues): void {',
        replace: '$& return;',
      },
    ],
    noticed: ['no work begins after the end', 'a node hears that a run is no longer its own'],
  },
  {
    name: 'a node does not look for runs that the store gave it in an answer that was lost',
    changes: [
      {
        file: 'src/engine/dispatch/shared-dispatcher.ts',
        find: 'if ((this.#inDoubt || this.#renewed % recheckAfter === 0) && this.#takes) await this.#offerLost();',
        replace: '',
      },
    ],
    noticed: ['no run is left open', 'a durable run goes on'],
  },
  {
    name: 'the queues of sessions are not polled for missed notifications',
    changes: [{ file: 'src/engine/engine.ts', find: '() => queue.check())', replace: 'async () => undefined)' }],
    noticed: ['no run is left open'],
  },
  {
    name: 'runs that failed with the store are not offered again',
    changes: [
      {
        file: 'src/engine/runs/executor.ts',
        find: 'onFailed({ run_id, outcome, row }: RunLog): void {\n    this.#services.offers.drop(run_id);',
        replace: 'onFailed({ run_id, outcome, row }: RunLog): void {',
      },
    ],
    noticed: ['no run is left open'],
  },
  {
    name: 'a reply is given to a question that is not stored yet',
    changes: [
      {
        file: 'src/engine/runs/reply-target.ts',
        find: 'log !== undefined && log.row.snapshot <= log.durable',
        replace: 'log !== undefined',
      },
    ],
    noticed: ['a reply is for a question that was asked before'],
  },
  {
    name: 'a forwarded reply to one question is delivered to the next one',
    changes: [
      { file: 'src/engine/runs/forward.ts', find: ' || log.row.snapshot !== at) return;', replace: ') return;' },
      {
        file: 'src/engine/execution/awaits.ts',
        find: 'if (reply.id !== undefined && reply.id !== asked.id)',
        replace: 'if (false)',
      },
    ],
    noticed: ['a reply goes to its question', 'a reply is given once'],
  },
  {
    name: 'a reply to a run of another node is taken in the store',
    changes: [
      {
        file: 'src/engine/runs/resume.ts',
        find: "row.tier === 'durable' && (row.rests_at !== null || !services.dispatcher.shared)",
        replace: "row.tier === 'durable'",
      },
    ],
    noticed: ['work is repeated only after a fault'],
  },
  {
    name: 'a cancel of a run of another node ends it in the store',
    changes: [
      {
        file: 'src/engine/runs/cancel.ts',
        find: 'const begun = isBegun(row);',
        replace: 'const begun = false && isBegun(row);',
      },
    ],
    noticed: ['an agent stops before its run is cancelled'],
  },
  {
    name: 'a node does not check whether it still owns its idle runs',
    changes: [
      {
        file: 'src/engine/cluster/sync.ts',
        find: 'if (this.#seen.get(run_id) === last) idle.push(run_id);',
        replace: "if (this.#seen.get(run_id) === last && log.row.status === 'awaiting') idle.push(run_id);",
      },
    ],
    noticed: ['a node hears that a run is no longer its own'],
  },
  {
    name: 'a run that finds its session free starts even if another one has started meanwhile',
    changes: [
      {
        file: 'src/engine/runs/session-queue.ts',
        find: "return { queued: false, when: 'alone' };",
        replace: 'return { queued: false };',
      },
    ],
    noticed: ['queued runs do not overlap', 'queued runs begin in order'],
  },
];

const root = resolve(import.meta.dirname, '../..');

/**
 * Copies the sources and the simulation to a folder of their own, with the changes. Returns the folder.
 * @throws Error where the text to be changed is not there
 */
export function mutate({ name, changes }: Mutation): string {
  const folder = join(root, 'node_modules/.cache/simulate');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const part of ['src', 'test/simulate', 'test/support', 'test/long', 'package.json', 'tsconfig.json'])
    cpSync(join(root, part), join(folder, part), { recursive: true });
  for (const { file, find, replace } of changes) {
    const path = join(folder, file);
    const source = readFileSync(path, 'utf8');
    if (source.split(find).length !== 2) throw new Error(`${name}: ${file} must contain this text once: ${find}`);
    writeFileSync(path, source.replace(find, replace));
  }
  return folder;
}
