import { type Connection, connect } from '../connect.ts';
import { exit, UsageError } from '../exit-codes.ts';
import { terminal } from '../terminal.ts';

export interface EraseOptions extends Connection {
  readonly owner?: string;
  readonly yes?: boolean;
}

/** Erases all that an owner has, or the caller itself. What is erased cannot be restored, so it asks first. */
export async function erase({ owner, yes = false, ...options }: EraseOptions): Promise<number> {
  const whose = owner === undefined ? 'the caller of this token' : owner;
  if (!yes && !(await isConfirmed(whose))) {
    terminal.note('Nothing was erased.');
    return exit.failed;
  }
  const { runs, sessions } = await connect(options).erase(owner);
  terminal.print(`Erased ${runs} runs and ${sessions} sessions of ${whose}.`);
  return exit.completed;
}

async function isConfirmed(whose: string): Promise<boolean> {
  if (!terminal.interactive) throw new UsageError('erase asks before it erases; without a terminal, give --yes');
  return terminal.withPrompt(new AbortController().signal, async (readLine) => {
    const typed = await readLine(`Erase all runs, sessions and messages of ${whose}? Type yes: `);
    return typed?.trim() === 'yes';
  });
}
