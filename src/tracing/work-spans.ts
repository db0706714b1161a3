import type * as Otel from '@opentelemetry/api';
import { errorOf } from '../core/errors.ts';
import type { ModelCallReport } from '../core/model-call.ts';
import type { WorkEnd, WorkSpan } from '../core/traces.ts';
import type { ErrorBody } from '../schema/error.ts';
import { modelContentOf } from './content.ts';
import { errorType, genAi, rivulet } from './conventions.ts';

/** What all spans share. */
export interface SpanTools {
  readonly api: typeof Otel;
  readonly tracer: Otel.Tracer;
  readonly duration: Otel.Histogram;
  /** Whether spans carry messages. */
  readonly content: boolean;
}

/** Sets the error of failed work. Returns its low-cardinality name. */
export function setError(span: Otel.Span, { api }: SpanTools, error: ErrorBody | undefined): string {
  const { code, data, message } = error ?? { code: 'server_error', message: '' };
  const type = [data?.reason, data?.code].find((one) => typeof one === 'string') ?? code;
  span.setAttribute(errorType, String(type));
  span.setStatus({ code: api.SpanStatusCode.ERROR, message });
  return String(type);
}

/** Of a step, or of a call of a tool. */
export class StepSpan implements WorkSpan {
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
export function addModelCall(tools: SpanTools, call: ModelCallReport, parent: Otel.Context): void {
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
