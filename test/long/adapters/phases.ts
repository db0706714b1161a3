import type { Reply } from './paid-chat.ts';
import type { Kind, Point } from './strict-model.ts';

/** When a process is killed, in the order of a turn that pays. */
export const phases = [
  'before the model call',
  'in the stream of the model call',
  'after the model call',
  'while the question is open',
  'after the reply',
  'while the tool runs',
  'after the tool',
  'in the stream of the last answer',
] as const;
export type Phase = (typeof phases)[number];

/** The answers that the model is held in. */
export const gates: Partial<Record<Phase, readonly [Kind, Point]>> = {
  'before the model call': ['call', 'request'],
  'in the stream of the model call': ['call', 'stream'],
  'after the model call': ['call', 'end'],
  'after the tool': ['answer', 'request'],
  'in the stream of the last answer': ['answer', 'stream'],
};

/** Whether a turn with the reply comes to the phase: a denied tool does not run. */
export const has = (phase: Phase, reply: Reply): boolean => phase !== 'while the tool runs' || reply !== 'deny';

/** Whether a tool may have begun in the phase, and has no result: adapters run it again, or say that its outcome is unknown. */
export const cutsTool = (phase: Phase): boolean => phase === 'after the reply' || phase === 'while the tool runs';
