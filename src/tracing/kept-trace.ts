import type * as Otel from '@opentelemetry/api';
import type { SpanIds } from '../core/ports/traces.ts';

/**
 * What the next span of a run belongs to. `parent`, `state` and `links` are a traceparent, its tracestate, and further
 * traceparents. The text of it is kept with the run, where other processes and later releases read it.
 */
export interface KeptTrace {
  readonly parent?: string;
  readonly state?: string;
  readonly links?: readonly string[];
}

/** Characters: the W3C specification asks for at least as many. */
const maxState = 512;

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string');

/** A text that cannot be read is as none: a run must not fail for its trace. */
export function parseKept(text: string | null): KeptTrace {
  if (text === null) return {};
  try {
    const { parent, state, links } = Object(JSON.parse(text));
    return {
      ...(typeof parent === 'string' && { parent }),
      ...(typeof state === 'string' && { state }),
      ...(isTexts(links) && { links }),
    };
  } catch {
    return {};
  }
}

export const formatKept = (kept: KeptTrace): string | null =>
  kept.parent === undefined && (kept.links ?? []).length === 0 ? null : JSON.stringify(kept);

export function traceparentOf({ traceId, spanId, traceFlags }: Otel.SpanContext): string {
  return `00-${traceId}-${spanId}-${(traceFlags & 0xff).toString(16).padStart(2, '0')}`;
}

/** The ids of a span for log lines; undefined for the span of an API without an SDK, whose ids are zeros. */
export const idsOf = ({ traceId, spanId }: Otel.SpanContext): SpanIds | undefined =>
  /[^0]/.test(traceId) ? { trace_id: traceId, span_id: spanId } : undefined;

/** The tracestate, if it is short enough to be kept. */
export function stateOf({ traceState }: Otel.SpanContext): string | undefined {
  const text = traceState?.serialize();
  return text === undefined || text === '' || text.length > maxState ? undefined : text;
}

const traceparent = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;

export function spanContextOf(text: string | undefined): Otel.SpanContext | undefined {
  const [, traceId, spanId, flags] = traceparent.exec(text ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
}
