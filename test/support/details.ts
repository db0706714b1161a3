import type { Message, Run } from '../../src/index.ts';

/** A Run as its events have it, from what `GET /runs/{run_id}` answers. */
export const withoutInput = <R extends Run>({ input: _, ...run }: R & { input?: Message[] }): Omit<R, 'input'> => run;

/** A Run as a list has it. */
export const listed = ({ questions: _, ...run }: Run, title: string) => ({ ...run, title, output: [] });
