import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { ErrorName } from '../../core/errors.ts';
import type { ClosedRequest, DropReason, StreamMode, TrafficObserver } from '../traffic.ts';

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
const requestSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const gapEvents = [0, 1, 10, 100, 1_000, 10_000, 100_000];

/** The metrics of requests and streams. Routes are patterns, so that no id becomes a label. */
export class RequestMetrics implements TrafficObserver {
  readonly #requests: Counter<'method' | 'route' | 'status'>;
  readonly #duration: Histogram<'method' | 'route' | 'status'>;
  readonly #streams: Counter<'mode'>;
  readonly #dropped: Counter<'reason'>;
  readonly #resumes: Counter;
  readonly #gap: Histogram;
  readonly #refused: Counter<'reason'>;
  readonly #authentications: Counter<'kind' | 'outcome'>;
  readonly #rateLimited: Counter<'limit'>;

  /** `openStreams` is asked for a scrape. */
  constructor(registry: Registry, openStreams: () => number) {
    const registers = [registry];
    const counter = <Label extends string>(name: string, help: string, labelNames: Label[]): Counter<Label> =>
      new Counter({ name: `rivulet_${name}`, help, labelNames, registers });
    this.#requests = counter(
      'http_requests_total',
      'Requests whose response is complete, or whose client has left (status aborted).',
      ['method', 'route', 'status'],
    );
    this.#duration = new Histogram({
      name: 'rivulet_http_request_duration_seconds',
      help: 'Time of a request until its response was complete, without streams.',
      labelNames: ['method', 'route', 'status'],
      buckets: requestSeconds,
      registers,
    });
    new Gauge({
      name: 'rivulet_streams',
      help: 'Streams that are open.',
      registers,
      collect() {
        this.set(openStreams());
      },
    });
    this.#streams = counter('streams_total', 'Streams that were opened.', ['mode']);
    this.#dropped = counter(
      'streams_dropped_total',
      'Streams that the server has ended or refused, and other answers that were not read.',
      ['reason'],
    );
    this.#resumes = counter('stream_resumes_total', 'Streams that continued after a cursor.', []);
    this.#gap = new Histogram({
      name: 'rivulet_stream_gap_events',
      help: 'Events between the cursor of a stream that continues and the end of the log.',
      buckets: gapEvents,
      registers,
    });
    this.#refused = counter('requests_refused_total', 'Requests that were refused before they were served.', [
      'reason',
    ]);
    this.#authentications = counter('auth_total', 'Credentials that were checked.', ['kind', 'outcome']);
    this.#rateLimited = counter('rate_limited_total', 'Requests that a rate limit has refused.', ['limit']);
  }

  onRequest({ method, route = '_other', status, seconds, stream }: ClosedRequest): void {
    const labels = {
      method: methods.has(method) ? method : '_other',
      route,
      status: status === undefined ? 'aborted' : `${Math.floor(status / 100)}xx`,
    };
    this.#requests.inc(labels);
    if (stream === undefined) this.#duration.observe(labels, seconds);
  }

  onStream(mode: StreamMode): void {
    this.#streams.inc({ mode });
  }

  onStreamResumed(gap: number): void {
    this.#resumes.inc();
    this.#gap.observe(gap);
  }

  onStreamDropped(reason: DropReason): void {
    this.#dropped.inc({ reason });
  }

  onRefused(reason: ErrorName): void {
    this.#refused.inc({ reason });
  }

  onAuthentication(kind: string, outcome: 'accepted' | 'refused'): void {
    this.#authentications.inc({ kind, outcome });
  }

  onRateLimited(limit: string): void {
    this.#rateLimited.inc({ limit });
  }
}
