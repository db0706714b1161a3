import { distinctUntilChanged, filter, map, mergeMap, type OperatorFunction, pipe, scan, tap } from 'rxjs';
import { reduce } from '../core/fold.ts';
import { isText } from '../core/media-types.ts';
import type { Event } from '../schema/event.ts';
import type { Message, MessagePart } from '../schema/message.ts';
import type { Run } from '../schema/run.ts';
import { runFailure } from './client-error.ts';

/**
 * The Run after each event, for a UI to render. Only the objects that an event changes are copied, so views can compare by
 * identity. `from` is the Run at the cursor, for readers that start after an event. Without it, the first Run is that of
 * the first event that carries one.
 */
export function toRun(from?: Run): OperatorFunction<Event, Run> {
  return pipe(
    scan((run: Run | undefined, event: Event) => {
      if (run !== undefined) return reduce(run, event);
      return 'run' in event ? event.run : undefined;
    }, from),
    filter((run) => run !== undefined),
  );
}

/** Each part of the output as it arrives, including the parts of whole messages. Fails if the run fails. */
export function parts(): OperatorFunction<Event, MessagePart> {
  return pipe(
    failWithRun(),
    filter((event) => event.type === 'message.part'),
    map(({ part }) => part),
  );
}

/** Each message of the output when it is complete. Fails if the run fails. */
export function messages(): OperatorFunction<Event, Message> {
  return pipe(
    failWithRun(),
    mergeMap((event) => (event.type === 'message.completed' ? [event.message] : [])),
  );
}

interface TextState {
  readonly text: string;
  /** Prefix of the next text. */
  readonly separator: string;
}

/**
 * The whole text of the output, each time that it has grown; a blank line between messages. Artifacts, data and steps are
 * left out. Fails if the run fails.
 */
export function text(): OperatorFunction<Event, string> {
  return pipe(
    failWithRun(),
    scan(appendText, { text: '', separator: '' }),
    map(({ text }) => text),
    distinctUntilChanged(),
    filter((text) => text !== ''),
  );
}

function appendText({ text, separator }: TextState, event: Event): TextState {
  if (event.type === 'message.created') return { text, separator: text && '\n\n' };
  const more = event.type === 'message.part' ? answerText(event.part) : '';
  return more === '' ? { text, separator } : { text: text + separator + more, separator: '' };
}

/** The text of a part of the answer; empty for artifacts, data and steps. */
export const answerText = (part: MessagePart): string =>
  part.name || part.metadata?.kind === 'trajectory' || !isText(part) ? '' : part.content;

/** The text of a message, without artifacts, data and steps. */
export const messageText = ({ parts }: Pick<Message, 'parts'>): string => parts.map(answerText).join('');

// A reader of parts does not see the run's status, so a failed run must not look like a complete output.
function failWithRun(): OperatorFunction<Event, Event> {
  return tap((event) => {
    if (event.type === 'run.failed') throw runFailure(event.run);
  });
}
