import { vi } from 'vitest';
import { execute } from '../../src/cli/program.ts';
import { RivuletProcess } from './process.ts';

export interface Ended {
  readonly code: number | string | null;
  readonly out: string;
  readonly err: string;
}

interface Where {
  readonly env?: Record<string, string>;
  readonly cwd?: string;
}

/** Runs a command to its end; its stdin is not a terminal, and has `input`. */
export async function rivulet(
  args: string[],
  { input = '', env = {}, cwd }: Where & { input?: string } = {},
): Promise<Ended> {
  const command = new RivuletProcess(args, env, cwd);
  command.child.stdin?.end(input);
  const code = await command.ended();
  return { code, out: command.out, err: command.err };
}

/**
 * Runs a command to its end in this process, which takes milliseconds; a process of its own takes half a second of CPU.
 * For commands that neither read stdin nor serve. Folder, environment and output belong to the process, so one command
 * runs at a time.
 */
export async function rivuletHere(args: string[], { env = {}, cwd = process.cwd() }: Where = {}): Promise<Ended> {
  if (isRunning) throw new Error('another command runs in this process');
  isRunning = true;
  const before = { env: process.env, cwd: process.cwd(), exitCode: process.exitCode };
  const printed = { out: '', err: '' };
  const keep = (name: keyof typeof printed) => (chunk: string | Uint8Array) => {
    printed[name] += String(chunk);
    return true;
  };
  const streams = [
    vi.spyOn(process.stdout, 'write').mockImplementation(keep('out')),
    vi.spyOn(process.stderr, 'write').mockImplementation(keep('err')),
  ];
  process.env = { PATH: before.env.PATH, ...env };
  process.chdir(cwd);
  process.exitCode = undefined;
  try {
    await execute(args);
    return { code: process.exitCode ?? 0, ...printed };
  } finally {
    process.exitCode = before.exitCode;
    process.chdir(before.cwd);
    process.env = before.env;
    for (const stream of streams) stream.mockRestore();
    isRunning = false;
  }
}

let isRunning = false;
