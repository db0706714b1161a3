import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { watch } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Whether there is an nginx. With `CI=true`, a missing one is an error. */
export function nginxThere(): boolean {
  if (spawnSync('nginx', ['-v']).status === 0) return true;
  if (process.env.CI === 'true') throw new Error('there is no nginx; install it');
  console.warn('\nSKIPPED: tests of what nginx is told, because there is none\n');
  return false;
}

/** Runs nginx with a configuration until the returned function is called. @throws Error with what it says against it */
export async function startNginx(configuration: string): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-nginx-'));
  writeFileSync(join(folder, 'nginx.conf'), configuration);
  const pid = join(folder, 'pid');
  const args = ['-p', folder, '-c', 'nginx.conf', '-e', 'stderr', '-g', `daemon off; pid ${pid};`];
  const started = new AbortController();
  const child = spawn('nginx', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const exited = once(child, 'exit').then(() => started.abort());
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await exited;
    rmSync(folder, { recursive: true });
  };
  try {
    // It writes its pid down when it listens.
    for await (const _ of watch(folder, { signal: started.signal })) if (existsSync(pid)) return stop;
  } catch {
    // It has ended.
  }
  await stop();
  throw new Error(`nginx did not start: ${said}`);
}
