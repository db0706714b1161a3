import { RivuletProcess } from './process.ts';

export interface Ended {
  readonly code: number | string | null;
  readonly out: string;
  readonly err: string;
}

/** Runs a command to its end; its stdin is not a terminal, and has `input`. */
export async function rivulet(
  args: string[],
  { input = '', env = {}, cwd }: { input?: string; env?: Record<string, string>; cwd?: string } = {},
): Promise<Ended> {
  const command = new RivuletProcess(args, env, cwd);
  command.child.stdin?.end(input);
  const code = await command.ended();
  return { code, out: command.out, err: command.err };
}
