import fc from 'fast-check';
import { encode } from '../../src/core/encode.ts';
import { fold, resumedEvent } from '../../src/core/fold.ts';
import { sharedState, statePatch } from '../../src/core/parts.ts';
import { runEventOf } from '../../src/core/recognize.ts';
import { isFinal } from '../../src/core/run-state.ts';
import type { Event } from '../../src/schema/event.ts';
import type { Message, MessagePart } from '../../src/schema/message.ts';
import type { Run, RunStatus } from '../../src/schema/run.ts';

const at = '2026-01-02T03:04:05.678Z';
const base64 = { content_type: 'image/png', content_encoding: 'base64', content: 'aGk=' } as const;

/** Text that is hard to splice: quotes, backslashes, control characters, line breaks of all kinds, emoji. */
const text = fc.oneof(
  fc.string({ unit: 'grapheme', maxLength: 8 }),
  fc.constantFrom('a"b', '\\', '\\"', '"}}', '\u2028', '\n\r\u0000', 'hello ', ''),
);

const token = text.map((content): MessagePart => ({ content_type: 'text/plain', content }));
const part: fc.Arbitrary<MessagePart> = fc.oneof(
  { weight: 4, arbitrary: token },
  text.map((content) => ({ content_type: 'text/html', content })),
  text.map((content) => ({ content_type: 'text/plain', content, name: 'a.txt' })),
  text.map((said) => ({ content_type: 'application/json', content: JSON.stringify({ said }) })),
  // Later data with the same id replaces this.
  text.map((said) => ({ content_type: 'application/json', content: JSON.stringify({ said }), id: 'own' })),
  fc.constant({ ...base64 }),
  fc.constant({ ...base64, name: 'a.png' }),
  fc.constant({ content_type: 'image/png', content_url: 'https://example.com/a.png' }),
  text.map((title) => ({
    content_type: 'text/plain',
    metadata: { kind: 'citation' as const, url: 'https://example.com/', title, start_index: 0, end_index: 1 },
  })),
  text.map((content) => ({ content_type: 'text/plain', content, metadata: { kind: 'citation' as const } })),
  text.map((message) => ({ content_type: 'text/plain', metadata: { kind: 'trajectory' as const, message } })),
  text.map((said) => ({
    content_type: 'text/plain',
    metadata: { kind: 'trajectory' as const, tool_name: 'look', tool_input: { said }, tool_output: { found: 1 } },
  })),
);

type Act =
  | { readonly do: 'message'; readonly parts: readonly MessagePart[]; readonly interrupted: boolean }
  | { readonly do: 'generic'; readonly kind: string }
  | {
      readonly do: 'ask';
      readonly question: string;
      readonly schema: boolean;
      readonly tool: boolean;
      readonly meanwhile: readonly MessagePart[];
      readonly reply: string;
    };

const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('message' as const),
      parts: fc.array(part, { maxLength: 5 }),
      interrupted: fc.boolean(),
    }),
  },
  fc.record({ do: fc.constant('generic' as const), kind: fc.constantFrom('progress', 'state', 'own') }),
  fc.record({
    do: fc.constant('ask' as const),
    question: text,
    schema: fc.boolean(),
    tool: fc.boolean(),
    // Agents may speak while they await.
    meanwhile: fc.oneof(fc.constant([]), fc.array(part, { maxLength: 3 })),
    reply: fc.constantFrom('true', 'false'),
  }),
);

/** What a random run does: its acts, a message that may stay open, and its end. */
const plan = fc.record({
  acts: fc.array(act, { maxLength: 6 }),
  open: fc.option(fc.array(part, { minLength: 1, maxLength: 3 })),
  end: fc.constantFrom<RunStatus>('completed', 'failed', 'cancelled', 'awaiting', 'in-progress'),
});

/** Random logs of runs that may have been recorded: every kind of part and event, every end, and none. */
export const logs: fc.Arbitrary<string[]> = plan.map(({ acts, open, end }) => {
  const lines: string[] = [];
  let run: Run = {
    run_id: '01990000-0000-7000-8000-000000000001',
    agent_name: 'any',
    session_id: '01990000-0000-7000-8000-000000000002',
    status: 'created',
    output: [],
    created_at: at,
  };
  const emit = (event: Event): void => {
    const line = encode(event);
    lines.push(line);
    // A fold changes what it is given. Its own copy of an event costs a tenth of `structuredClone`.
    run = fold(run, JSON.parse(line));
  };
  const status = (type: 'created' | 'in-progress' | 'awaiting', more: Partial<Run> = {}): void => {
    const { questions: _, await_request: __, await_resume: ___, ...rest } = run;
    emit({ type: `run.${type}`, run: { ...rest, ...more, status: type, output: [] } });
  };
  const complete = (interrupted = false): void => {
    const said = run.output.at(-1);
    if (said === undefined) return;
    const reason = interrupted && { finish_reason: 'interrupted' as const };
    emit({ type: 'message.completed', message: { ...said, ...reason, completed_at: at } });
  };
  const say = (parts: readonly MessagePart[], isOpen = false, interrupted = false): void => {
    const message: Message = { role: 'agent/any', parts: [], created_at: at };
    emit({ type: 'message.created', message: { ...message, completed_at: null } });
    for (const one of parts) emit({ type: 'message.part', part: one });
    if (!isOpen) complete(interrupted);
  };
  let asked = 0;
  const ask = (question: string, schema: boolean, tool: boolean): void => {
    asked += 1;
    const message: Message = {
      role: 'agent/any',
      parts: [{ content_type: 'text/plain', content: question }],
      created_at: at,
      completed_at: at,
    };
    status('awaiting', {
      await_request: {
        type: 'message',
        message,
        id: String(asked),
        ...(schema && { schema: { type: 'boolean' } }),
        ...(tool && { tool: { name: 'browse', input: { url: 'https://example.com/' } } }),
      },
    });
  };
  status('created');
  status('in-progress');
  for (const one of acts) {
    if (one.do === 'message') say(one.parts, false, one.interrupted);
    else if (one.do === 'generic') emit({ type: 'generic', generic: { kind: one.kind, value: { a: 1 } } });
    else {
      ask(one.question, one.schema, one.tool);
      if (one.meanwhile.length > 0) say(one.meanwhile, true);
      const message: Message = {
        role: 'user',
        parts: [{ content_type: 'text/plain', content: one.reply }],
        created_at: at,
        completed_at: at,
      };
      emit(resumedEvent(run, { type: 'message', message, id: String(asked), channel: 'api', received_at: at }));
      if (one.meanwhile.length > 0) complete();
    }
  }
  if (end === 'awaiting') ask('Well?', false, false);
  else if (open !== null) say(open, end !== 'completed');
  if (end === 'completed' || end === 'failed' || end === 'cancelled') {
    const error = { code: 'server_error' as const, message: 'It broke.' };
    emit({ type: `run.${end}`, run: { ...run, status: end, finished_at: at, ...(end === 'failed' && { error }) } });
  }
  return lines;
});

const quiet = { role: 'agent/any', parts: [], created_at: at };
const said = { content_type: 'text/plain', content: 'still here' };
/** What an agent does while it awaits, or at any time: it says something, and changes the state. */
const extras: Event[][] = [
  [
    { type: 'message.created', message: { ...quiet, completed_at: null } },
    { type: 'message.part', part: said },
    { type: 'message.completed', message: { ...quiet, parts: [said], completed_at: at } },
  ],
  [sharedState({ steps: [] })],
  [statePatch([{ op: 'add', path: '/steps/-', value: 'one' }])],
  [statePatch([{ op: 'remove', path: '/no/such' }])],
  // No operations: an event of the agent's own.
  [{ type: 'generic', generic: { kind: 'state', patch: [{ op: 'set', path: 'steps', value: null }] } }],
];

/** Logs in which the agent goes on between any two changes of the status, also while it awaits. */
export const busyLogs: fc.Arbitrary<string[]> = fc
  .tuple(logs, fc.array(fc.nat({ max: 2 * extras.length }), { maxLength: 8 }))
  .map(([log, picks]) => {
    const left = [...picks];
    return withEnd(
      log.flatMap((line, index) => {
        const next = log[index + 1];
        const isBetween = runEventOf(line) !== undefined && next !== undefined;
        const extra = isBetween ? extras[left.shift() ?? -1] : undefined;
        return [line, ...(extra ?? []).map(encode)];
      }),
    );
  });

/** A log whose final event has the whole output and all questions, as a run records it. */
function withEnd(log: readonly string[]): string[] {
  let run: Run | undefined;
  return log.map((line) => {
    const event: Event = JSON.parse(line);
    if ('run' in event && isFinal(event.run.status) && run !== undefined) {
      const { output, questions } = run;
      event.run = { ...event.run, output, ...(questions && { questions }) };
    }
    const whole = encode(event);
    if (run !== undefined) run = fold(run, event);
    else if ('run' in event) run = event.run;
    return whole;
  });
}
