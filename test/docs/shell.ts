import { execFile } from 'node:child_process';
import { expect } from 'vitest';
import { type Block, missingLines, programOf, stable } from './blocks.ts';

const separator = '@@ block';

/** Runs blocks of shell one after the other in one shell, so that a later one has the variables of an earlier one. */
export async function runInShell(
  blocks: readonly Block[],
  { url, cwd, env = {} }: { url: string; cwd?: string; env?: Record<string, string> },
): Promise<string[]> {
  const script = blocks.map((block) => `echo '${separator}'\n${programOf(block, url)}`).join('\n');
  const { out, err, code } = await bash(script, { ...env, RIVULET_URL: url }, cwd);
  const [, ...parts] = out.split(`${separator}\n`);
  const last = blocks[parts.length - 1];
  expect(code, `${last?.place} ended with ${code}: ${parts.at(-1)}${err}`).toBe(0);
  return parts;
}

const bash = (
  script: string,
  env: Record<string, string>,
  cwd: string | undefined,
): Promise<{ out: string; err: string; code: number }> =>
  new Promise((resolve) => {
    const options = {
      env: { ...process.env, NO_PROXY: '*', no_proxy: '*', ...env },
      timeout: 200_000,
      ...(cwd && { cwd }),
    };
    const child = execFile('bash', ['-c', `set -euo pipefail\n${script}`], options, (error, out, err) =>
      resolve({ out, err, code: error === null ? 0 : Number(error.code ?? 1) }),
    );
    child.stdin?.end();
  });

/** Asserts that a program printed what the page shows behind it. JSON may have more fields than the page shows. */
export function expectOutput({ output, place }: Block, printed: string): void {
  if (output === undefined || output.marks.has('pending')) return;
  if (output.language === 'json') {
    const actual: unknown = JSON.parse(stable(printed));
    expect(actual, place).toMatchObject(JSON.parse(stable(output.text)));
  } else expect(missingLines(output.text, printed), `${place}: ${printed}`).toEqual([]);
}
