/** What has to be gone when the bench is, however it ends: its processes and its folder. */
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const children = new Set<ChildProcess>();

/** Notes a process that must not outlive the bench. */
export function owned(child: ChildProcess): ChildProcess {
  children.add(child);
  child.on('exit', () => children.delete(child));
  return child;
}

/** A folder for as long as the bench runs. Called once, at its beginning. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-bench-'));
  process.on('exit', () => {
    for (const child of children) child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
  return folder;
}
