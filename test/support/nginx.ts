import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, watch, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Whether there is an nginx. With `CI=true`, a missing one is an error. */
export function nginxThere(): boolean {
  if (spawnSync('nginx', ['-v']).status === 0) return true;
  if (process.env.CI === 'true') throw new Error('there is no nginx; install it');
  console.warn('\nSKIPPED: tests of what nginx is told, because there is none\n');
  return false;
}

/** Runs nginx with a configuration until the returned function is called. @throws Error with nginx's message */
export async function startNginx(configuration: string): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(tmpdir(), 'rivulet-nginx-'));
  writeFileSync(join(folder, 'nginx.conf'), configuration);
  const pid = join(folder, 'pid');
  const args = ['-p', folder, '-c', 'nginx.conf', '-e', 'stderr', '-g', `daemon off; pid ${pid};`];
  // nginx writes its pid file when it listens. Watched before the start, so that the write is not missed.
  const changes = watch(folder);
  const up = new Promise<boolean>((resolve) => changes.on('change', () => existsSync(pid) && resolve(true)));
  const child = spawn('nginx', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const exited = once(child, 'exit').then(() => false);
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await exited;
    rmSync(folder, { recursive: true });
  };
  const listens = await Promise.race([up, exited]);
  changes.close();
  if (listens) return stop;
  await stop();
  throw new Error(`nginx did not start: ${said}`);
}
