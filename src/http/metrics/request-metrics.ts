import { Counter, Gauge, type Registry } from 'prom-client';
import type { ErrorName } from '../../core/errors.ts';
import type { ClosedRequest, DropReason, StreamMode, TrafficObserver } from '../traffic.ts';
import { PlainHistogram, type Series } from './plain-histogram.ts';

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
const requestSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const gapEvents = [0, 1, 10, 100, 1_000, 10_000, 100_000];

/** prom-client takes a microsecond to find a series by its labels: too long for what each request counts. */
interface Tally<Label extends string> {
  readonly labels: Readonly<Record<Label, string>>;
  count: number;
}

interface RouteRequests extends Tally<'method' | 'route' | 'status'> {
  /** Undefined until a request of them is not a stream. */
  durations: Series | undefined;
}

/** The metrics of requests and streams. Routes are patterns, so that no id becomes a label. */
export class RequestMetrics implements TrafficObserver {
  readonly #byRoute = new Map<string, RouteRequests>();
  readonly #duration: PlainHistogram;
  readonly #streams: Counter<'mode'>;
  readonly #dropped: Counter<'reason'>;
  readonly #resumes: Counter;
  readonly #gap: Series;
  readonly #refused: Counter<'reason'>;
  readonly #authentications = new Map<string, Tally<'kind' | 'outcome'>>();
  readonly #rateLimited: Counter<'limit'>;

  /** `openStreams` is asked for a scrape. */
  constructor(registry: Registry, openStreams: () => number) {
    const registers = [registry];
    const labels = ['method', 'route', 'status'] as const;
    const tallied = <Label extends string>(
      name: string,
      help: string,
      labelNames: readonly Label[],
      tallies: ReadonlyMap<string, Tally<Label>>,
    ): Counter<Label> =>
      new Counter({
        name: `rivulet_${name}`,
        help,
        labelNames,
        registers,
        collect() {
          this.reset();
          for (const { labels, count } of tallies.values()) this.inc(labels, count);
        },
      });
    tallied(
      'http_requests_total',
      'Requests whose response is complete, or whose client has left (status aborted).',
      labels,
      this.#byRoute,
    );
    this.#duration = new PlainHistogram({
      name: 'rivulet_http_request_duration_seconds',
      help: 'Time of a request until its response was complete, without streams.',
      labelNames: labels,
      buckets: requestSeconds,
      registers,
    });
    const counter = <Label extends string>(name: string, help: string, labelNames: Label[]): Counter<Label> =>
      new Counter({ name: `rivulet_${name}`, help, labelNames, registers });
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
    this.#gap = new PlainHistogram({
      name: 'rivulet_stream_gap_events',
      help: 'Events between the cursor of a stream that continues and the end of the log.',
      buckets: gapEvents,
      registers,
    }).add({});
    this.#refused = counter('requests_refused_total', 'Requests that were refused before they were served.', [
      'reason',
    ]);
    tallied('auth_total', 'Credentials that were checked.', ['kind', 'outcome'], this.#authentications);
    this.#rateLimited = counter('rate_limited_total', 'Requests that a rate limit has refused.', ['limit']);
  }

  onRequest({ method, route = '_other', status, seconds, stream }: ClosedRequest): void {
    const known = this.#requestsOf(method, route, status === undefined ? 'aborted' : `${Math.floor(status / 100)}xx`);
    known.count += 1;
    if (stream !== undefined) return;
    known.durations ??= this.#duration.add(known.labels);
    known.durations.observe(seconds);
  }

  #requestsOf(given: string, route: string, status: string): RouteRequests {
    const method = methods.has(given) ? given : '_other';
    const key = `${method} ${status} ${route}`;
    let known = this.#byRoute.get(key);
    if (known === undefined) {
      known = { labels: { method, route, status }, count: 0, durations: undefined };
      this.#byRoute.set(key, known);
    }
    return known;
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
    const key = `${kind} ${outcome}`;
    const known = this.#authentications.get(key);
    if (known !== undefined) known.count += 1;
    else this.#authentications.set(key, { labels: { kind, outcome }, count: 1 });
  }

  onRateLimited(limit: string): void {
    this.#rateLimited.inc({ limit });
  }
}
