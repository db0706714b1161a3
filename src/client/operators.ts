import { filter, map, mergeMap, type OperatorFunction, pipe, scan, tap } from 'rxjs';
import { reduce } from '../core/run-state.ts';
import type { Event } from '../schema/event.ts';
import type { Message, MessagePart } from '../schema/message.ts';
import type { Run } from '../schema/run.ts';
import { ClientError } from './client-error.ts';

/**
 * The Run after each event: what a UI renders. Only what an event touches is copied, so views can compare by identity.
 * `from` is the Run as it was at the cursor, for readers that begin after an event; without it the first Run is
 * that of the first event that carries one.
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

/** Each part of the answer as it comes, also those of whole messages. Errors where the run fails. */
export function parts(): OperatorFunction<Event, MessagePart> {
  return pipe(
    unlessFailed(),
    filter((event) => event.type === 'message.part'),
    map(({ part }) => part),
  );
}

/** Each message of the answer when it is complete. Errors where the run fails. */
export function messages(): OperatorFunction<Event, Message> {
  return pipe(
    unlessFailed(),
    mergeMap((event) => (event.type === 'message.completed' ? [event.message] : [])),
  );
}

interface Growing {
  readonly text: string;
  readonly grew: boolean;
  /** What the next text begins with. */
  readonly before: string;
}

/**
 * The text of the answer, whole, each time that it has grown; a blank line between messages. Artifacts, data and
 * steps that the agent took are no text. Errors where the run fails.
 */
export function text(): OperatorFunction<Event, string> {
  return pipe(
    unlessFailed(),
    scan(grow, { text: '', grew: false, before: '' }),
    filter(({ grew }) => grew),
    map(({ text }) => text),
  );
}

function grow({ text, before }: Growing, event: Event): Growing {
  if (event.type === 'message.created') return { text, grew: false, before: text === '' ? '' : '\n\n' };
  const more = event.type === 'message.part' ? textOf(event.part) : '';
  return more === '' ? { text, grew: false, before } : { text: `${text}${before}${more}`, grew: true, before: '' };
}

/** The text that a part adds to an answer, or none: artifacts, data and steps are no text. */
export function textOf({
  name,
  content = '',
  content_type = 'text/plain',
  content_encoding,
  metadata,
}: MessagePart): string {
  const isText = content_type.startsWith('text/') && content_encoding !== 'base64';
  return isText && name === undefined && metadata?.kind !== 'trajectory' ? content : '';
}

// Who looks at parts does not see how the run ends; a failure must not look like the end of the answer.
function unlessFailed(): OperatorFunction<Event, Event> {
  return tap((event) => {
    if (event.type !== 'run.failed') return;
    const { error = { code: 'server_error', message: 'The run failed.' } } = event.run;
    // The call itself was answered well, and sending it again would not mend the run.
    throw new ClientError({ ...error, status: 200 });
  });
}
