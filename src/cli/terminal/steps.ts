import { type CallReport, callOf } from '../../core/parts.ts';
import { isFinal, isSettled } from '../../core/run-state.ts';
import { hasResult, indexOfCall } from '../../core/tool-calls.ts';
import type { Event } from '../../schema/event.ts';
import type { TrajectoryMetadata } from '../../schema/message.ts';

/** A step that an agent takes, or its progress. */
export interface Step {
  readonly text: string;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  /** The tool of a call whose output is not there yet. */
  readonly tool?: string;
  readonly tool_call_id?: string | undefined;
  readonly progress?: Progress;
}

export interface Progress {
  readonly message: string;
  readonly done?: number;
  readonly total?: number;
}

export interface EndedStep {
  readonly text: string;
  /** Undefined where the step had no beginning of its own. */
  readonly milliseconds?: number;
  readonly ok: boolean;
  /** Whether it has output that its beginning did not have. */
  readonly hasOutput: boolean;
}

/** Steps that are shown as running; the oldest ends when there are more. */
const maxRunning = 20;

/**
 * Which steps of an agent are running. A call of a tool runs until a trajectory with the tool's output; other steps run
 * until the agent goes on. Progress runs until the agent does something else, and a trajectory then stands for it.
 */
export class Steps {
  #running: readonly Step[] = [];
  /** Calls of other agents, by path, with the time of the log. They run until their own end, or that of the run. */
  readonly #calls = new Map<string, Step & { readonly began: number }>();

  get running(): readonly Step[] {
    return [...this.#calls.values(), ...this.#running];
  }

  /** Applies an event. Returns the steps that it has ended. */
  next(event: Event, now: number): EndedStep[] {
    if ('run' in event) {
      const { status } = event.run;
      const ended = isSettled(status) ? this.#endAll(now, status === 'completed' || status === 'awaiting') : [];
      if (!isFinal(status)) return ended;
      const calls = [...this.#calls.values()].map(({ text }) => ({ text, ok: false, hasOutput: false }));
      this.#calls.clear();
      return [...ended, ...calls];
    }
    const call = event.type === 'generic' ? callOf(event.generic) : undefined;
    if (call !== undefined) return this.#call(call, now);
    const progress = progressOf(event);
    if (progress !== undefined) return this.#progress(progress, now);
    if (event.type !== 'message.part') return event.type === 'message.created' ? this.#endAll(now) : [];
    const { metadata } = event.part;
    if (metadata?.kind === 'citation') return [];
    return metadata?.kind === 'trajectory' ? this.#trajectory(metadata, now) : this.#endAll(now);
  }

  #call({ path, agent, state, at }: CallReport, now: number): EndedStep[] {
    const time = Date.parse(at);
    if (state === 'began') {
      const call = { text: callText(path, agent), startedAt: now, began: time };
      if (this.#calls.size < maxRunning) this.#calls.set(path, call);
      return [];
    }
    const call = this.#calls.get(path);
    this.#calls.delete(path);
    if (call === undefined) return [];
    return [{ text: call.text, milliseconds: time - call.began, ok: state === 'completed', hasOutput: false }];
  }

  #progress(progress: Progress, now: number): EndedStep[] {
    const last = this.#running.find((step) => step.progress !== undefined);
    const rest = this.#running.filter((step) => step !== last);
    const text = progressText(progress);
    // Without a total, each message is a step of its own.
    const continues = last?.progress?.total === progress.total && (progress.total !== undefined || last?.text === text);
    const startedAt = continues ? (last?.startedAt ?? now) : now;
    const ended = last === undefined || continues ? [] : [endOf(last, now)];
    return [...ended, ...this.#run([...rest, { text, startedAt, progress }], now)];
  }

  #trajectory(metadata: TrajectoryMetadata, now: number): EndedStep[] {
    const { tool_name: tool, tool_call_id, tool_error } = metadata;
    const text = stepText(metadata);
    if (!hasResult(metadata)) {
      const others = this.#running.filter((step) => step.tool === undefined);
      this.#running = this.#running.filter((step) => step.tool !== undefined);
      const before = others.map((step) => endOf(step, now));
      return [
        ...before,
        ...this.#run([...this.#running, { text, startedAt: now, ...(tool && { tool }), tool_call_id }], now),
      ];
    }
    // The call that this is the output of, or else the progress that led to it.
    const began = this.#callOf(metadata) ?? this.#running.find((step) => step.progress !== undefined);
    this.#running = this.#running.filter((step) => step !== began);
    const milliseconds = began === undefined ? undefined : now - began.startedAt;
    return [{ text, ok: tool_error === undefined, hasOutput: true, milliseconds }];
  }

  #callOf(metadata: TrajectoryMetadata): Step | undefined {
    const calls = this.#running.filter(({ tool }) => tool !== undefined);
    const open = calls.map(({ tool, tool_call_id }) => ({ name: tool, tool_call_id }));
    return metadata.tool_name === undefined ? undefined : calls[indexOfCall(metadata, open)];
  }

  #run(running: readonly Step[], now: number): EndedStep[] {
    this.#running = running.slice(-maxRunning);
    return running.slice(0, -maxRunning).map((step) => endOf(step, now));
  }

  #endAll(now: number, ok = true): EndedStep[] {
    const all = this.#running.map((step) => endOf(step, now, ok));
    this.#running = [];
    return all;
  }
}

/** The name of a called agent, indented by the number of calls around it. */
const callText = (path: string, agent: string): string => `${'  '.repeat(path.split(' ').length - 1)}agent ${agent}`;

const endOf = ({ text, startedAt }: Step, now: number, ok = true): EndedStep => ({
  text,
  milliseconds: now - startedAt,
  ok,
  hasOutput: false,
});

/** The progress that an event reports, by the convention of `progress()`. */
export function progressOf(event: Event): Progress | undefined {
  if (event.type !== 'generic' || event.generic.kind !== 'progress') return undefined;
  const { message, done, total } = event.generic;
  return {
    message: typeof message === 'string' ? message : 'Working',
    ...(typeof done === 'number' && Number.isFinite(done) && { done }),
    ...(typeof total === 'number' && Number.isFinite(total) && total > 0 && { total }),
  };
}

/** Progress in one line: `Reading (2/5)`. */
export const progressText = ({ message, done, total }: Progress): string =>
  [message, done === undefined ? '' : `(${total === undefined ? done : `${done}/${total}`})`].filter(Boolean).join(' ');

/** A bar of ten characters; undefined without a total. */
export function progressBar({ done = 0, total }: Progress): string | undefined {
  if (total === undefined) return undefined;
  const filled = Math.round(Math.min(Math.max(done / total, 0), 1) * 10);
  return `${'█'.repeat(filled)}${'░'.repeat(10 - filled)}`;
}

const stepText = ({ message, tool_name, tool_input, tool_output, tool_error }: TrajectoryMetadata): string =>
  [
    message,
    tool_name && `${tool_name} ${tool_input ? JSON.stringify(tool_input) : ''}`.trim(),
    tool_output && `→ ${JSON.stringify(tool_output)}`,
    tool_error !== undefined && `→ failed: ${tool_error}`,
  ]
    .filter(Boolean)
    .join(' ') || 'a step';
