import type * as Otel from '@opentelemetry/api';
import { errorOf } from '../core/errors.ts';
import type { ModelCallReport } from '../core/model-call.ts';
import type {
  AgentSpan,
  CallSpan,
  ExecutionEnd,
  ExecutionSpan,
  SpanIds,
  TracedExecution,
  WorkEnd,
  WorkSpan,
} from '../core/ports/traces.ts';
import type { AgentManifest } from '../schema/agent.ts';
import type { ErrorBody } from '../schema/error.ts';
import type { RunUsage } from '../schema/run.ts';
import { contentOf, modelContentOf } from './content.ts';
import { errorType, genAi, rivulet } from './conventions.ts';
import { formatKept, idsOf, type KeptTrace, parseKept, spanContextOf, traceparentOf } from './kept-trace.ts';

/** What a span belongs to. */
interface Origin {
  readonly parent: Otel.Context;
  readonly links: Otel.Link[];
}

/** Characters of an agent's description in its spans. */
const maxDescription = 1_000;

/** `invoke_agent` of a run's own agent, or of one that it called. */
abstract class InvokedAgent implements AgentSpan {
  protected readonly tools: SpanTools;
  /** The span of the moment, or the last one. */
  protected span: Otel.Span;
  readonly #name: string;
  readonly #attributes: Otel.Attributes;
  readonly #context: Otel.Context;
  readonly #calls = new Set<CalledAgent>();
  #began = performance.now();
  #open = true;

  constructor(tools: SpanTools, manifest: AgentManifest, more: Otel.Attributes, origin: Origin) {
    const { name, description } = manifest;
    this.tools = tools;
    this.#name = name;
    this.#attributes = {
      [genAi.operation]: 'invoke_agent',
      [genAi.provider]: 'rivulet',
      [genAi.agentName]: name,
      [genAi.agentId]: name,
      [genAi.agentDescription]: description.slice(0, maxDescription),
      ...more,
    };
    this.span = this.#startSpan(origin);
    // Of the trace alone: the baggage of a request is not for the agent's requests.
    this.#context = tools.api.trace.setSpan(
      tools.api.ROOT_CONTEXT,
      currentSpan(() => this.span),
    );
  }

  protected get open(): boolean {
    return this.#open;
  }

  within<T>(work: () => T): T {
    return this.tools.api.context.with(this.#context, work);
  }

  headers(): Record<string, string> {
    const headers: Record<string, string> = {};
    this.tools.api.propagation.inject(this.#context, headers);
    return headers;
  }

  step(name: string): WorkSpan {
    return new StepSpan(this.tools, `rivulet.step ${name}`, this.#context);
  }

  tool(name: string, tool_call_id: string): WorkSpan {
    return new StepSpan(this.tools, `execute_tool ${name}`, this.#context, {
      [genAi.operation]: 'execute_tool',
      [genAi.toolName]: name,
      [genAi.toolCallId]: tool_call_id,
      [genAi.toolType]: 'function',
      [genAi.agentName]: this.#name,
    });
  }

  modelCall(report: ModelCallReport): void {
    // A child of the step that made the call.
    const active = this.tools.api.context.active();
    addModelCall(this.tools, report, this.tools.api.trace.getSpan(active) === undefined ? this.#context : active);
  }

  call(manifest: AgentManifest): CallSpan {
    const called = new CalledAgent(this.tools, manifest, this.#context, (ended) => void this.#calls.delete(ended));
    this.#calls.add(called);
    return called;
  }

  protected suspendCalls(): void {
    for (const called of this.#calls) called.suspend();
  }

  /** Begins the next span, which links to the one before. */
  protected restart({ parent, links }: Origin): void {
    this.#began = performance.now();
    this.span = this.#startSpan({ parent, links: [{ context: this.span.spanContext() }, ...links] });
    this.#open = true;
    for (const called of this.#calls) called.resume(this.#context);
  }

  protected endSpan(failed: boolean, error: ErrorBody | undefined): void {
    if (!this.#open) return;
    this.#open = false;
    const type = failed ? setError(this.span, this.tools, error) : undefined;
    this.tools.duration.record((performance.now() - this.#began) / 1000, {
      [genAi.operation]: 'invoke_agent',
      [genAi.provider]: 'rivulet',
      [genAi.agentName]: this.#name,
      ...(type !== undefined && { [errorType]: type }),
    });
    this.span.end();
  }

  #startSpan({ parent, links }: Origin): Otel.Span {
    return this.tools.tracer.startSpan(`invoke_agent ${this.#name}`, { attributes: this.#attributes, links }, parent);
  }
}

class CalledAgent extends InvokedAgent implements CallSpan {
  readonly #onEnd: (ended: CalledAgent) => void;

  constructor(tools: SpanTools, manifest: AgentManifest, parent: Otel.Context, onEnd: (ended: CalledAgent) => void) {
    super(tools, manifest, {}, { parent, links: [] });
    this.#onEnd = onEnd;
  }

  suspend(): void {
    this.suspendCalls();
    this.span.setAttribute(rivulet.outcome, 'awaiting');
    this.endSpan(false, undefined);
  }

  resume(parent: Otel.Context): void {
    this.restart({ parent, links: [] });
  }

  end({ outcome, error }: WorkEnd): void {
    this.#onEnd(this);
    if (this.open) this.span.setAttribute(rivulet.outcome, outcome);
    this.endSpan(outcome === 'failed', error);
  }
}

/** `invoke_agent` of a run's own agent: a span for each stretch between two awaits. */
export class InvokedRun extends InvokedAgent implements ExecutionSpan {
  constructor(tools: SpanTools, execution: TracedExecution) {
    const { manifest, run_id, session_id, epoch, attempts, trace, input } = execution;
    const attributes: Otel.Attributes = {
      [genAi.conversation]: session_id,
      [rivulet.run]: run_id,
      [rivulet.epoch]: epoch,
      [rivulet.attempt]: attempts,
    };
    super(tools, manifest, attributes, originOf(tools, parseKept(trace)));
    if (tools.content) this.span.setAttribute(genAi.inputMessages, contentOf(input));
  }

  get kept(): string | null {
    return formatKept({ links: [traceparentOf(this.span.spanContext())] });
  }

  get ids(): SpanIds | undefined {
    return idsOf(this.span.spanContext());
  }

  suspend(end: ExecutionEnd): void {
    this.suspendCalls();
    this.end(end);
  }

  resume(requested: string | null): void {
    if (!this.open) this.restart(originOf(this.tools, parseKept(requested)));
  }

  end({ status, error, usage, firstPart, output }: ExecutionEnd): void {
    if (!this.open) return;
    const { span } = this;
    span.setAttribute(rivulet.status, status);
    if (usage !== undefined) span.setAttributes(tokensOf(usage));
    if (firstPart !== undefined) span.setAttribute(genAi.firstChunk, firstPart);
    if (this.tools.content) span.setAttribute(genAi.outputMessages, contentOf(output));
    this.endSpan(error !== undefined, error);
  }
}

/** Tokens of which the agent does not say more are taken for generated ones, as parts are. */
function tokensOf({ tokens, input_tokens: input, output_tokens: output }: RunUsage): Otel.Attributes {
  return {
    ...(input !== undefined && { [genAi.inputTokens]: input }),
    [genAi.outputTokens]: output ?? Math.max(0, tokens - (input ?? 0)),
  };
}

function originOf({ api }: SpanTools, { parent, state, links = [] }: KeptTrace): Origin {
  const context = spanContextOf(parent);
  const traceState = state === undefined ? undefined : api.createTraceState(state);
  return {
    parent:
      context === undefined
        ? api.ROOT_CONTEXT
        : api.trace.setSpanContext(api.ROOT_CONTEXT, { ...context, ...(traceState && { traceState }) }),
    links: links.flatMap((link) => spanContextOf(link) ?? []).map((linked) => ({ context: linked })),
  };
}

/** What all spans share. */
export interface SpanTools {
  readonly api: typeof Otel;
  readonly tracer: Otel.Tracer;
  readonly duration: Otel.Histogram;
  /** Whether spans carry messages. */
  readonly content: boolean;
}

/** Sets the error of failed work. Returns its low-cardinality name. */
function setError(span: Otel.Span, { api }: SpanTools, error: ErrorBody | undefined): string {
  const { code, data, message } = error ?? { code: 'server_error', message: '' };
  const type = [data?.reason, data?.code].find((one) => typeof one === 'string') ?? code;
  span.setAttribute(errorType, String(type));
  span.setStatus({ code: api.SpanStatusCode.ERROR, message });
  return String(type);
}

/** Of a step, or of a call of a tool. */
class StepSpan implements WorkSpan {
  readonly #tools: SpanTools;
  readonly #span: Otel.Span;
  readonly #context: Otel.Context;

  constructor(tools: SpanTools, name: string, parent: Otel.Context, attributes: Otel.Attributes = {}) {
    this.#tools = tools;
    this.#span = tools.tracer.startSpan(name, { attributes }, parent);
    this.#context = tools.api.trace.setSpan(parent, this.#span);
  }

  within<T>(work: () => T): T {
    return this.#tools.api.context.with(this.#context, work);
  }

  end({ outcome, error }: WorkEnd): void {
    this.#span.setAttribute(rivulet.outcome, outcome);
    if (outcome === 'failed') setError(this.#span, this.#tools, error);
    this.#span.end();
  }
}

/** Adds the span of a call of a model, after its end. */
function addModelCall(tools: SpanTools, call: ModelCallReport, parent: Otel.Context): void {
  const { api, tracer, content } = tools;
  const { model, provider, started, firstToken, ended = Date.now(), error } = call;
  const span = tracer.startSpan(
    `chat ${model}`,
    {
      kind: api.SpanKind.CLIENT,
      startTime: started,
      attributes: {
        [genAi.operation]: 'chat',
        [genAi.requestModel]: model,
        ...(provider !== undefined && { [genAi.provider]: provider }),
        ...(call.response_id !== undefined && { [genAi.responseId]: call.response_id }),
        ...(call.response_model !== undefined && { [genAi.responseModel]: call.response_model }),
        ...(call.finish_reasons !== undefined && { [genAi.finishReasons]: [...call.finish_reasons] }),
        ...(call.input_tokens !== undefined && { [genAi.inputTokens]: call.input_tokens }),
        ...(call.output_tokens !== undefined && { [genAi.outputTokens]: call.output_tokens }),
        ...(firstToken !== undefined && { [genAi.firstChunk]: (firstToken - started) / 1_000 }),
        ...(content && call.input !== undefined && { [genAi.inputMessages]: modelContentOf(call.input) }),
        ...(content && call.output !== undefined && { [genAi.outputMessages]: modelContentOf(call.output) }),
      },
    },
    parent,
  );
  if (error !== undefined) setError(span, tools, errorOf(error));
  span.end(ended);
}

/**
 * The span that is active in an agent's code. It stands for the span of the moment: an `async` function that has awaited a
 * reply goes on in the async context in which it asked, whose span has ended. The span ends with the work of the agent, so
 * that `end` in the agent's code has no effect.
 */
const currentSpan = (current: () => Otel.Span): Otel.Span =>
  new Proxy(current(), {
    get(_, name, proxy) {
      if (name === 'end') return () => undefined;
      const span = current();
      const value: unknown = Reflect.get(span, name);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]): unknown => {
        const returned: unknown = Reflect.apply(value, span, args);
        return returned === span ? proxy : returned;
      };
    },
  });
