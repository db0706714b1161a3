import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createClient, text } from 'rivulet/client';
import { lastValueFrom } from 'rxjs';
import type { TestContext } from 'vitest';
import { Output } from '../support/output.ts';
import { RivuletProcess } from '../support/process.ts';
import { makeProject } from '../support/project.ts';

/** Starts `serve --watch` on a project; both end with the test. */
export async function watchedProject(
  { onTestFinished }: TestContext,
  files: Record<string, string>,
  args: readonly string[] = [],
) {
  const { folder, remove } = makeProject(files);
  const server = new RivuletProcess(['serve', '--watch', '--port', '0', '--store', 'memory:', ...args], {}, folder);
  const output = new Output(server.child);
  onTestFinished(async () => {
    await server.stop('SIGKILL');
    remove();
  });
  const client = createClient({ url: await server.url() });
  return {
    server,
    client,
    path: (name: string) => join(folder, name),
    /** Replaces a file by renaming a new one, as editors do. */
    write: (name: string, content: string) => {
      writeFileSync(join(folder, '.written'), content);
      renameSync(join(folder, '.written'), join(folder, name));
    },
    /** Resolves when the server has printed the text. */
    printed: (line: string) => output.has(line),
    ask: (agent: string) => lastValueFrom(client.run(agent, 'x').pipe(text())),
  };
}
