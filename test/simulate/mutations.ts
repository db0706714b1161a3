import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

/** A defect that the engine has had, put back by a change of its source, and the invariants that have to notice it. */
export interface Mutation {
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  readonly noticed: readonly string[];
}

export const mutations: readonly Mutation[] = [
  {
    name: 'a reply is given to whatever is asked next',
    file: 'src/engine/cluster/reply-mailbox.ts',
    find: "'at' in entry && entry.at === snapshot",
    replace: "'at' in entry",
    noticed: ['a reply goes to its question', 'a reply is given once'],
  },
  {
    name: 'the ends of runs do not let the next ones of their sessions begin',
    file: 'src/engine/runs/session-queue.ts',
    find: 'if (before.size === 0) begin();',
    replace: 'if (before.size === 0 && session_id === run_id) begin();',
    noticed: ['no run is left open'],
  },
  {
    name: 'an execution that is fenced is not ended',
    file: 'src/engine/runs/active-runs.ts',
    find: 'if (failure !== undefined) execution.lost(failure);',
    replace: '',
    noticed: ['no work begins after the end', 'a node hears that a run is no longer its own'],
  },
];

const root = resolve(import.meta.dirname, '../..');

/**
 * Copies the sources and the simulation to a folder of their own, with one change. Returns the folder.
 * @throws Error where the text to be changed is not there
 */
export function mutate({ name, file, find, replace }: Mutation): string {
  const folder = join(root, 'node_modules/.cache/simulate');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const part of ['src', 'test/simulate', 'test/support', 'test/long', 'package.json', 'tsconfig.json'])
    cpSync(join(root, part), join(folder, part), { recursive: true });
  const path = join(folder, file);
  const source = readFileSync(path, 'utf8');
  if (source.split(find).length !== 2) throw new Error(`${name}: ${file} has to have this once: ${find}`);
  writeFileSync(
    path,
    source.replace(find, () => replace),
  );
  return folder;
}
