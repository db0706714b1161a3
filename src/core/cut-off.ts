import type { FinishReason, Message } from '../schema/message.ts';

/**
 * Whether a message broke off when its process died. Its work was done again, and the messages after it repeat it. People
 * see it. A model does not get it, because its history would have the same answer twice.
 */
export const isInterrupted = ({ finish_reason }: Pick<Message, 'finish_reason'>): boolean =>
  finish_reason === 'interrupted';

/** What a model or a person is told of a message that is not whole, in place of the rest. */
export const cutOffNotes: Readonly<Record<CutOff, string>> = {
  length: 'This answer was cut off: it came to the limit of tokens.',
  content_filter: 'This answer was cut off by a content filter.',
  cancelled: 'This answer was stopped before its end.',
  failed: 'This answer ended with an error.',
};

/** A reason for which a message is the last that was said: nothing says it anew. */
export type CutOff = Exclude<FinishReason, 'interrupted'>;

/** A reason that the server of a model has given, and that protocols of models have a word for. */
export type ModelCutOff = Exclude<CutOff, 'cancelled' | 'failed'>;

export const isModelCutOff = (cutOff: CutOff | undefined): cutOff is ModelCutOff =>
  cutOff === 'length' || cutOff === 'content_filter';

/** Why a message that nothing says anew is not whole; undefined where it is. */
export const cutOffOf = ({ finish_reason }: Pick<Message, 'finish_reason'>): CutOff | undefined =>
  finish_reason === 'interrupted' ? undefined : finish_reason;
