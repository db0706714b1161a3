import type { Run } from '../../client/client.ts';
import { type CallReport, callOf, textOf } from '../../core/parts.ts';
import { isFinal } from '../../core/run-state.ts';
import type { Event, RunEvent } from '../../schema/event.ts';
import { usePlayground } from '../app/playground.ts';
import type { FollowedRun } from '../conversation/conversation.ts';
import { useNewest } from '../elements/controls.tsx';
import { formatDuration } from '../elements/format.ts';
import type { LoggedEvent } from './run-record.ts';

/** A part of a run that takes time. */
export interface Span {
  readonly kind: 'run' | 'queue' | 'message' | 'step' | 'progress' | 'question' | 'call';
  readonly label: string;
  readonly detail?: string | undefined;
  /** Milliseconds since the run began. */
  readonly from: number;
  /** Undefined while it goes on. */
  readonly to?: number;
}

/** Milliseconds between creation and start that are shown as a time in the queue. */
const minQueue = 10;

/** The run, its messages, steps, progress, calls and questions, in the order in which they began to show. */
export function timelineOf(events: readonly LoggedEvent[]): Span[] {
  const timeline = new Timeline();
  for (const logged of events) timeline.add(logged);
  return timeline.spans;
}

class Timeline {
  readonly spans: Span[] = [];
  /** The time of the event before. A step or a progress is reported at its end; it began then at the earliest. */
  #before = 0;

  add({ at, event }: LoggedEvent): void {
    if ('run' in event) this.#status(event.run, at);
    else this.#event(event, at);
    this.#before = at;
  }

  #event(event: Exclude<Event, RunEvent>, at: number): void {
    switch (event.type) {
      case 'message.created':
        this.spans.push({ kind: 'message', label: event.message.role.replace(/^agent\//, ''), from: at });
        break;
      case 'message.completed':
        this.#close('message', at);
        break;
      case 'message.part': {
        const { metadata } = event.part;
        if (metadata?.kind !== 'trajectory') break;
        const { tool_name, message } = metadata;
        this.spans.push({
          kind: 'step',
          label: tool_name ?? message ?? 'Step',
          detail: message,
          from: this.#before,
          to: at,
        });
        break;
      }
      case 'generic':
        this.#call(callOf(event.generic), at);
        if (event.generic.kind === 'progress') this.#progress(String(event.generic.message ?? 'Progress'), at);
        break;
      case 'error':
        break;
      default:
        // A newer server may have more types.
        event satisfies never;
    }
  }

  #status({ status, agent_name, await_request }: Run, at: number): void {
    if (status === 'created') this.spans.push({ kind: 'run', label: agent_name, from: at });
    else if (status === 'awaiting') {
      const detail = await_request && textOf(await_request.message);
      this.spans.push({ kind: 'question', label: 'Question', detail, from: at });
    } else if (status === 'in-progress') {
      this.#close('question', at);
      const isStart = this.spans.length === 1 && at - this.#before >= minQueue;
      if (isStart) this.spans.push({ kind: 'queue', label: 'Queue', from: this.#before, to: at });
    } else {
      for (const kind of ['run', 'message', 'question'] as const) this.#close(kind, at);
      for (const { kind, detail, to } of [...this.spans])
        if (kind === 'call' && to === undefined) this.#close(kind, at, detail);
    }
  }

  /** A call ends with its own event, or with the run. */
  #call(call: CallReport | undefined, at: number): void {
    if (call === undefined) return;
    const { path, agent, state } = call;
    if (state !== 'began') this.#close('call', at, path);
    else this.spans.push({ kind: 'call', label: agent, detail: path, from: at });
  }

  /** Progress events one after the other are one span; the last one gives its label. */
  #progress(label: string, at: number): void {
    const last = this.spans.at(-1);
    const continues = last?.kind === 'progress' && last.to === this.#before;
    if (continues) this.spans.pop();
    this.spans.push({ kind: 'progress', label, from: continues ? last.from : this.#before, to: at });
  }

  /** Ends the last span of the kind that is open; of calls, the one with the path. */
  #close(kind: Span['kind'], to: number, path?: string): void {
    const index = this.spans.findLastIndex(
      (span) => span.kind === kind && span.to === undefined && (path === undefined || span.detail === path),
    );
    const span = this.spans[index];
    if (span !== undefined) this.spans[index] = { ...span, to };
  }
}

/** Spans in the page at once. */
const maxSpans = 200;

/** A waterfall: when each message, step and question of the run began, and how long it took. */
export function TimelineView({ followed: { record } }: { followed: FollowedRun }) {
  const { now } = usePlayground();
  const spans = timelineOf(record.events);
  const { run } = record;
  const isLive = run !== undefined && !isFinal(run.status);
  // While the run goes on, its open spans grow with the clock.
  const end = isLive && now.value > 0 ? record.elapsed(performance.now()) : record.lastEventAt;
  const { newest, first, older } = useNewest(spans, maxSpans);
  return (
    <>
      {spans.length === 0 && <p class="note">No events yet.</p>}
      {older}
      <ol class="timeline stack">
        {newest.map((span, index) => (
          <Bar key={`${first + index}`} span={span} end={end} timed={record.createdHere || hasTime(span)} />
        ))}
      </ol>
    </>
  );
}

const kinds: Readonly<Record<Span['kind'], string>> = {
  run: 'Run',
  queue: 'Queue',
  message: 'Message',
  step: 'Step',
  progress: 'Progress',
  call: 'Call',
  question: 'Question',
};

/** Milliseconds. Steps of the past arrive together, because the log has no times for them. */
const minTime = 5;
const hasTime = ({ kind, from, to }: Span): boolean =>
  (kind !== 'step' && kind !== 'progress') || to === undefined || to - from > minTime;

interface BarProps {
  readonly span: Span;
  readonly end: number;
  /** Whether its times are known. */
  readonly timed: boolean;
}

function Bar({ span: { kind, label, detail, from, to }, end, timed }: BarProps) {
  const share = (time: number): string => `${(100 * Math.min(time, end)) / Math.max(end, 1)}%`;
  const took = formatDuration((to ?? end) - from);
  return (
    <li data-kind={kind} title={detail ?? label}>
      <span class="label clip">
        <small>{kinds[kind]}</small> {label === kinds[kind] ? (detail ?? '') : label}
      </span>
      <span class="time">
        {timed ? (
          <>
            {to === undefined ? `${took}…` : took} <small>at {formatDuration(from)}</small>
          </>
        ) : (
          <small>no time in the log</small>
        )}
      </span>
      <span class="track">{timed && <span style={{ left: share(from), width: share((to ?? end) - from) }} />}</span>
    </li>
  );
}
