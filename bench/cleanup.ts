/** Kills the processes of the bench and removes its folder at exit, however it ends. */
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const children = new Set<ChildProcess>();

/** Registers a process that must not outlive the bench. */
export function killAtExit(child: ChildProcess): ChildProcess {
  children.add(child);
  child.on('exit', () => children.delete(child));
  return child;
}

/** A folder that is removed at exit. Called once, at the start. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-bench-'));
  process.on('exit', () => {
    for (const child of children) child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
  return folder;
}
