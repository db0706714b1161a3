import { context, metrics, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';

/** An OpenTelemetry SDK that keeps all in memory, registered for the tests of a file. */
export class Sdk {
  readonly #exporter = new InMemorySpanExporter();
  readonly #metrics = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  readonly #reader = new PeriodicExportingMetricReader({ exporter: this.#metrics, exportIntervalMillis: 3_600_000 });

  static use(): Sdk {
    const sdk = new Sdk();
    beforeAll(() => sdk.#register());
    afterEach(() => sdk.#exporter.reset());
    // Other files run in the same process.
    afterAll(async () => {
      await sdk.#reader.shutdown();
      for (const api of [trace, context, propagation, metrics]) api.disable();
    });
    return sdk;
  }

  #register(): void {
    trace.setGlobalTracerProvider(
      new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(this.#exporter)] }),
    );
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    propagation.setGlobalPropagator(new W3CTraceContextPropagator());
    metrics.setGlobalMeterProvider(new MeterProvider({ readers: [this.#reader] }));
  }

  /** The spans that have ended, in that order. */
  get spans(): ReadableSpan[] {
    return this.#exporter.getFinishedSpans();
  }

  /** The spans of this name, when there are as many; by the time of their begin. */
  async named(name: string, count = 1): Promise<ReadableSpan[]> {
    const found = (): ReadableSpan[] => this.spans.filter((span) => span.name === name);
    await expect.poll(() => found().length).toBeGreaterThanOrEqual(count);
    return found().sort((a, b) => a.startTime[0] - b.startTime[0] || a.startTime[1] - b.startTime[1]);
  }

  /** The only span of this name. */
  async one(name: string): Promise<ReadableSpan> {
    const [span, ...others] = await this.named(name);
    if (span === undefined || others.length > 0) throw new Error(`expected one span ${name}`);
    return span;
  }

  /** The data points of a metric. */
  async points(name: string): Promise<{ readonly attributes: object; readonly value: unknown }[]> {
    await this.#reader.forceFlush();
    const all =
      this.#metrics
        .getMetrics()
        .at(-1)
        ?.scopeMetrics.flatMap(({ metrics: some }) => some) ?? [];
    return all.filter(({ descriptor }) => descriptor.name === name).flatMap(({ dataPoints }) => [...dataPoints]);
  }
}

/** The ids of the spans that a span links to. */
export const linksOf = (span: ReadableSpan): string[] => span.links.map(({ context: { spanId } }) => spanId);

export const idOf = (span: ReadableSpan): string => span.spanContext().spanId;
