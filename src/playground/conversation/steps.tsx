import { type CallReport, callOf } from '../../core/parts.ts';
import { isCallOnly } from '../../core/tool-calls.ts';
import type { TrajectoryMetadata } from '../../schema/message.ts';
import { formatDuration } from '../elements/format.ts';
import { JsonView } from '../elements/json-view.tsx';
import type { StepRow } from './content.ts';
import { isDone, type Note, progressOf } from './run-flow.ts';

/** Milliseconds that a step took, if the page has seen it live. */
export type StepTime = (parts: readonly number[]) => number | undefined;

export interface StepsProps {
  readonly rows: readonly StepRow[];
  /** Whether the run is at work and nothing follows these steps yet. */
  readonly running: boolean;
  /** Undefined for a run of the past: the page knows only when it read each step. */
  readonly timeOf: StepTime | undefined;
}

/** Steps and events of a run in their order. The last one has a spinner while it goes on. */
export function Steps({ rows, running, timeOf }: StepsProps) {
  if (rows.length === 0) return null;
  return (
    <ol class="steps stack" aria-label="Steps">
      {rows.map((row, index) => {
        const last = running && index === rows.length - 1;
        return (
          <li key={`${index}`}>
            {'step' in row ? (
              <StepLine
                {...row.step.step}
                running={last && isCallOnly(row.step.step)}
                time={timeOf?.(row.step.parts)}
              />
            ) : (
              <NoteLine note={row.note} running={last && !isDone(row.note.generic)} timed={timeOf !== undefined} />
            )}
          </li>
        );
      })}
    </ol>
  );
}

interface LineProps {
  readonly running: boolean;
  readonly time: number | undefined;
}

type Step = Omit<TrajectoryMetadata, 'kind'>;

/** A step, and on opening its input and its result. */
export function StepLine({ message, tool_name, tool_input, tool_output, tool_error, running, time }: Step & LineProps) {
  const line = (
    <>
      <State name={running ? 'running' : tool_error === undefined ? 'done' : 'failed'} />
      {tool_name !== undefined && <code>{tool_name}</code>}
      <span class="what">{message ?? (tool_name === undefined ? 'A step' : '')}</span>
      <Time running={running} time={time} />
    </>
  );
  if (tool_input === undefined && tool_output === undefined && tool_error === undefined)
    return <div class="step">{line}</div>;
  return (
    <details>
      <summary class="step">{line}</summary>
      {tool_input !== undefined && <JsonView label="the input" heading="Input" value={tool_input} />}
      {tool_output !== undefined && <JsonView label="the output" heading="Output" value={tool_output} />}
      {tool_error !== undefined && <p class="problem">{tool_error}</p>}
    </details>
  );
}

interface NoteProps {
  readonly note: Note;
  readonly running: boolean;
  readonly timed: boolean;
}

function NoteLine({ note: { generic, began, ended }, running, timed }: NoteProps) {
  const call = callOf(generic);
  if (call !== undefined) return <CallLine {...call} began={generic.began} />;
  const progress = progressOf(generic);
  if (progress === undefined) return <GenericLine generic={generic} />;
  const { message, done, total } = progress;
  return (
    <div class="step">
      <State name={running ? 'running' : 'done'} />
      <span class="what">{message}</span>
      {done !== undefined && total !== undefined && total > 0 && (
        <>
          <progress value={done} max={total} aria-label={message} />
          <small>
            {done}/{total}
          </small>
        </>
      )}
      <Time running={running} time={timed && ended > began ? ended - began : undefined} />
    </div>
  );
}

/** A call of another agent, indented below its caller. The log has the times of calls. */
function CallLine({ path, agent, state, at, began }: CallReport & { began: unknown }) {
  const time = typeof began === 'string' ? Date.parse(at) - Date.parse(began) : undefined;
  return (
    <div class="step call" style={{ '--depth': String(path.split(' ').length - 1) }}>
      <State name={state === 'began' ? 'running' : state === 'completed' ? 'done' : 'failed'} />
      <code>{agent}</code>
      <span class="what">{callWords[state]}</span>
      <Time running={false} time={time} />
    </div>
  );
}

const callWords = {
  began: 'is called',
  completed: 'was called',
  failed: 'failed',
  cancelled: 'was cancelled',
} as const;

/** An event of the agent's own kind. */
function GenericLine({ generic }: { generic: Note['generic'] }) {
  const { kind, message, ...rest } = generic;
  return (
    <details>
      <summary class="step">
        <State name="event" />
        <code>{typeof kind === 'string' ? kind : 'event'}</code>
        <span class="what">{typeof message === 'string' ? message : preview(rest)}</span>
      </summary>
      <JsonView label="the event" value={generic} />
    </details>
  );
}

/** Characters of an event in its line. */
const maxPreview = 80;

function preview(data: object): string {
  const text = JSON.stringify(data).slice(1, -1);
  return text.length > maxPreview ? `${text.slice(0, maxPreview)}…` : text;
}

const words = { running: 'Running', done: 'Done', failed: 'Failed', event: 'Event' } as const;

const State = ({ name }: { name: keyof typeof words }) => (
  <span class="state" data-state={name}>
    <span class="unseen">{words[name]}: </span>
  </span>
);

const Time = ({ running, time }: LineProps) =>
  running || time === undefined ? null : <small class="time">{formatDuration(time)}</small>;
