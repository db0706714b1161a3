import type { AgentLog } from '../../core/agent.ts';
import { errorOf } from '../../core/errors.ts';
import { cut } from '../../core/json.ts';
import type { ModelCallReport } from '../../core/model-call.ts';
import type { Diagnostic, LogLevel, ModelCall } from '../../schema/diagnostic.ts';
import { diagnosticLine } from '../log/journal.ts';
import type { Recorder } from './recorder.ts';

/** Entries that one execution may keep. */
const maxEntries = 2_000;
/** Characters of JSON that one execution may keep in all, of one model call, and of one line of the log. */
const maxChars = 4 * 1024 * 1024;
const maxCallChars = 512 * 1024;
const maxLogChars = 2_000;

/** The agent that reports. */
interface Reporter {
  readonly agent_name: string;
  readonly path: string;
}

/**
 * Keeps what agents report beside their output: calls of models, and lines of `context.log`. They are lines of the journal,
 * so they come with the run's commits, are erased with the run, and no stream has them. A replay keeps nothing twice.
 */
export class Diagnostics {
  readonly #recorder: Recorder;
  readonly #now: () => string;
  /** Whether messages, tools and lines of the log are kept. */
  readonly #capturesContent: boolean;
  #entries = 0;
  #chars = 0;

  constructor(recorder: Recorder, now: () => string, capturesContent: boolean) {
    this.#recorder = recorder;
    this.#now = now;
    this.#capturesContent = capturesContent;
  }

  modelCall(report: ModelCallReport, reporter: Reporter): void {
    if (!this.#isOpen) return;
    const call: ModelCall = { kind: 'model_call', ...this.#from(reporter), ...figuresOf(report) };
    const { input, tools, output } = report;
    const content = {
      ...(input !== undefined && { input_messages: [...input] }),
      ...(tools !== undefined && { tool_definitions: [...tools] }),
      ...(output !== undefined && { output_messages: [...output] }),
    };
    const chars = this.#capturesContent ? charsOf(content) : 0;
    const fits = chars <= maxCallChars && this.#chars + chars <= maxChars;
    if (chars === 0) this.#keep(call);
    else this.#keep(fits ? { ...call, ...content } : { ...call, content_omitted: chars });
  }

  /** A log that also keeps its lines. */
  keeping(log: AgentLog, reporter: Reporter): AgentLog {
    if (!this.#capturesContent) return log;
    const write = (level: LogLevel) => (message: string) => {
      log[level](message);
      this.#keepLine(level, message, reporter);
    };
    return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
  }

  #keepLine(level: LogLevel, message: string, reporter: Reporter): void {
    if (!this.#isOpen || this.#chars > maxChars) return;
    const text = cut(String(message), maxLogChars);
    this.#keep({ kind: 'log', ...this.#from(reporter), logged_at: this.#now(), level, message: text });
  }

  /** In a replay the agent reports what is in the journal already. */
  get #isOpen(): boolean {
    return this.#recorder.replay === undefined && this.#entries < maxEntries;
  }

  #from({ agent_name, path }: Reporter): { at: number; agent_name: string; path?: string } {
    return { at: this.#recorder.log.row.last, agent_name, ...(path !== '' && { path }) };
  }

  #keep(diagnostic: Diagnostic): void {
    const line = diagnosticLine(diagnostic);
    this.#entries += 1;
    this.#chars += line.length;
    this.#recorder.journal(line);
  }
}

/** Zero where there is no content, or some that JSON cannot express: a report never ends a run. */
function charsOf(content: object): number {
  try {
    return Object.keys(content).length === 0 ? 0 : JSON.stringify(content).length;
  } catch {
    return 0;
  }
}

type Figures = Omit<ModelCall, 'kind' | 'at' | 'agent_name' | 'path'>;

function figuresOf(report: ModelCallReport): Figures {
  const { model, provider, started, firstToken, ended = Date.now(), error } = report;
  const { response_id, response_model, finish_reasons, input_tokens, output_tokens } = report;
  return {
    started_at: new Date(started).toISOString(),
    ended_at: new Date(ended).toISOString(),
    request_model: model,
    ...(provider !== undefined && { provider_name: provider }),
    ...(response_id !== undefined && { response_id }),
    ...(response_model !== undefined && { response_model }),
    ...(finish_reasons !== undefined && { response_finish_reasons: [...finish_reasons] }),
    ...(firstToken !== undefined && { response_time_to_first_chunk: (firstToken - started) / 1_000 }),
    ...(input_tokens !== undefined && { usage_input_tokens: input_tokens }),
    ...(output_tokens !== undefined && { usage_output_tokens: output_tokens }),
    ...(error !== undefined && { error: errorOf(error).message }),
  };
}
