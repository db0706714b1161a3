import type * as Otel from '@opentelemetry/api';
import type { ExecutionSpan, SpanIds, TracedExecution, TraceHeaders, Traces } from '../core/ports/traces.ts';
import { within } from '../core/timing.ts';
import { capturesContent } from './content.ts';
import { genAi } from './conventions.ts';
import { formatKept, idsOf, type KeptTrace, parseKept, stateOf, traceparentOf } from './kept-trace.ts';
import { InvokedRun, type SpanTools } from './spans.ts';

export interface TraceOptions {
  /** Of this package. */
  readonly version: string;
  /** Whether spans become children of the trace context of a request's headers. Otherwise they link to it. */
  readonly trusted: boolean;
  readonly onWarning: (text: string) => void;
}

/** Milliseconds that the export of the last spans may take, when the process stops. */
const maxFlush = 3_000;
/** Of the GenAI conventions, in seconds. */
const buckets = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/**
 * Traces for the OpenTelemetry SDK that the process has registered; undefined without one. The API is loaded only then,
 * because it is an optional dependency, and a server without an SDK pays nothing for traces.
 */
export async function openTraces(options: TraceOptions): Promise<Traces | undefined> {
  const registered = registeredSdk();
  if (registered?.trace === undefined) return undefined;
  const api = await import('@opentelemetry/api').catch(() => undefined);
  const reason =
    api === undefined
      ? '@opentelemetry/api is not installed beside rivulet'
      : api.trace.getTracerProvider() !== registered.trace &&
        `rivulet loads another version of @opentelemetry/api than the SDK, which has ${registered.version}`;
  if (api === undefined || reason !== false) {
    options.onWarning(`runs are not traced: ${reason}; install one version, from 1.9.0, for both`);
    return undefined;
  }
  return new OpenTelemetryTraces(api, options);
}

/** What SDKs register for all copies of the API. A copy of an API that is newer than the SDK's does not see it. */
function registeredSdk(): { readonly version?: unknown; readonly trace?: unknown } | undefined {
  return Reflect.get(globalThis, Symbol.for('opentelemetry.js.api.1'));
}

/** What the API does not say of a provider. */
interface Flushed {
  readonly getDelegate?: () => Flushed;
  readonly forceFlush?: () => Promise<void>;
}

class OpenTelemetryTraces implements Traces {
  readonly #api: typeof Otel;
  readonly #trusted: boolean;
  readonly #tools: SpanTools;

  constructor(api: typeof Otel, { version, trusted }: TraceOptions) {
    this.#api = api;
    this.#trusted = trusted;
    this.#tools = {
      api,
      tracer: api.trace.getTracer('rivulet', version),
      duration: api.metrics.getMeter('rivulet', version).createHistogram(genAi.duration, {
        unit: 's',
        description: 'Time of an execution of an agent, until it ends or awaits',
        advice: { explicitBucketBoundaries: buckets },
      }),
      content: capturesContent(process.env),
    };
  }

  requested(headers: TraceHeaders | undefined, kept: string | null): string | null {
    const { links = [] } = parseKept(kept);
    const { parent, state, links: more = [] } = this.#request(headers);
    return formatKept({ ...(parent && { parent }), ...(state && { state }), links: [...more, ...links] });
  }

  active(): SpanIds | undefined {
    const { trace, context } = this.#api;
    const active = trace.getSpanContext(context.active());
    return active && idsOf(active);
  }

  begin(execution: TracedExecution): ExecutionSpan {
    return new InvokedRun(this.#tools, execution);
  }

  async flush(): Promise<void> {
    const provider: Otel.TracerProvider & Flushed = this.#api.trace.getTracerProvider();
    // The registered provider stands for the one of the SDK. Not `instanceof`: it may be of another copy of the API, which
    // has one for `import` and one for `require`.
    const sdk = provider.getDelegate?.() ?? provider;
    await within(maxFlush, Promise.resolve(sdk.forceFlush?.())).catch(() => undefined);
  }

  #request(headers: TraceHeaders | undefined): KeptTrace {
    const { trace, context, propagation, isSpanContextValid, ROOT_CONTEXT } = this.#api;
    const active = trace.getSpanContext(context.active());
    if (active !== undefined && isSpanContextValid(active)) return parentIn(active);
    if (headers?.traceparent === undefined) return {};
    const sent = trace.getSpanContext(propagation.extract(ROOT_CONTEXT, headers));
    if (sent === undefined || !isSpanContextValid(sent)) return {};
    return this.#trusted ? parentIn(sent) : { links: [traceparentOf(sent)] };
  }
}

function parentIn(context: Otel.SpanContext): KeptTrace {
  const state = stateOf(context);
  return { parent: traceparentOf(context), ...(state !== undefined && { state }) };
}
