import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createClient, text } from 'rivulet/client';
import { lastValueFrom } from 'rxjs';
import type { TestContext } from 'vitest';
import { Output } from '../support/output.ts';
import { RivuletProcess } from '../support/process.ts';
import { makeProject } from '../support/project.ts';

/** A file with an agent of that name. */
export const says = (name: string, body: string): string =>
  `import { defineAgent } from 'rivulet';\nexport default defineAgent({ name: '${name}', description: 'A ${name}.' }, ${body});\n`;

/** A project whose server watches it. */
export async function watching({ onTestFinished }: TestContext, files: Record<string, string>) {
  const { folder, remove } = makeProject(files);
  const server = new RivuletProcess(['serve', '--watch', '--port', '0', '--store', 'memory:'], {}, folder);
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
    /** As editors do: another file, moved to the place of the old one. */
    write: (name: string, content: string) => {
      writeFileSync(join(folder, '.written'), content);
      renameSync(join(folder, '.written'), join(folder, name));
    },
    /** Resolves when the server has said it. */
    said: (words: string) => output.has(words),
    ask: (agent: string) => lastValueFrom(client.run(agent, 'x').pipe(text())),
  };
}
