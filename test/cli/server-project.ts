import { once } from 'node:events';
import { onTestFinished, type TestContext } from 'vitest';
import type { Run } from '../../src/index.ts';
import { RivuletProcess } from '../support/process.ts';
import { makeProject } from '../support/project.ts';
import { ask } from '../support/serve.ts';

type Cleanup = Pick<TestContext, 'onTestFinished'>;

/** The source of a file with one agent. */
export const agentFile = (name: string, body = '(input) => input'): string =>
  `import { defineAgent } from 'rivulet';\nexport default defineAgent({ name: '${name}', description: 'A ${name}.' }, ${body});\n`;

/** The folder of a project with these files; removed after the test. Concurrent tests pass their context. */
export function projectFolder(
  files: Record<string, string>,
  { onTestFinished: cleanUp }: Cleanup = { onTestFinished },
) {
  const { folder, remove } = makeProject(files);
  cleanUp(remove);
  return folder;
}

/** Starts `rivulet` with these arguments in a folder; killed after the test. */
export function startRivulet(
  folder: string,
  args: string[],
  { onTestFinished: cleanUp }: Cleanup = { onTestFinished },
  env: Record<string, string> = {},
): RivuletProcess {
  const rivulet = new RivuletProcess(args, env, folder);
  cleanUp(async () => {
    await rivulet.stop('SIGKILL');
  });
  return rivulet;
}

/** Posts the body as JSON. */
export const post = (url: string, body: object): Promise<Response> =>
  fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });

/** Creates a run at the server; in mode `sync`, unless `options` name another. */
export const createRun = async (url: string, agent: string, options: object = {}): Promise<Run> =>
  (await post(`${url}/runs`, ask(agent, 'hi', options))).json();

export const getJson = async (url: string) => (await fetch(url)).json();

/** The address that a process logs when it serves its metrics. */
export async function metricsOf(rivulet: RivuletProcess): Promise<string> {
  for (;;) {
    const found = /the metrics are at (http:\S+)\/metrics/.exec(rivulet.out)?.[1];
    if (found !== undefined) return found;
    if (rivulet.child.exitCode !== null) throw new Error(`rivulet ended: ${rivulet.err || rivulet.out}`);
    await Promise.race([once(rivulet.child.stdout ?? rivulet.child, 'data'), once(rivulet.child, 'exit')]);
  }
}
