import { textOf as textOfMessage } from '../../src/core/parts.ts';
import type { Run } from '../../src/schema/run.ts';

/** All text of a run's output. */
export const textOf = ({ output }: Run): string => output.map(textOfMessage).join('');

/** The types of the events of a run that emits one message with so many parts. */
export const oneMessage = (parts = 1): string[] => [
  'run.created',
  'run.in-progress',
  'message.created',
  ...Array.from({ length: parts }, () => 'message.part'),
  'message.completed',
  'run.completed',
];
