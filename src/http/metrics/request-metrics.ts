import type { TrafficObserver } from '../traffic.ts';
import type { Meters } from './meters.ts';

const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
const requestSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const gapEvents = [0, 1, 10, 100, 1_000, 10_000, 100_000];

/** The metrics of requests and streams. Routes are patterns, so that no id becomes a label. */
export function requestMetrics({ counter, histogram, asked }: Meters, openStreams: () => number): TrafficObserver {
  const requests = counter(
    'http_requests_total',
    'Requests whose response is complete, or whose client has left (status aborted).',
    ['method', 'route', 'status'],
  );
  const duration = histogram(
    'http_request_duration_seconds',
    'Time of a request until its response was complete, without streams.',
    requestSeconds,
    ['method', 'route', 'status'],
  );
  asked('streams', 'Streams that are open.', openStreams);
  const streams = counter('streams_total', 'Streams that were opened.', ['mode']);
  const dropped = counter(
    'streams_dropped_total',
    'Streams that the server has ended or refused, and other answers that were not read.',
    ['reason'],
  );
  const resumes = counter('stream_resumes_total', 'Streams that continued after a cursor.', []);
  const gaps = histogram(
    'stream_gap_events',
    'Events between the cursor of a stream that continues and the end of the log.',
    gapEvents,
    [],
  );
  const refused = counter('requests_refused_total', 'Requests that were refused before they were served.', ['reason']);
  const authentications = counter('auth_total', 'Credentials that were checked.', ['kind', 'outcome']);
  const rateLimited = counter('rate_limited_total', 'Requests that a rate limit has refused.', ['limit']);
  return {
    onRequest({ method, route = '_other', status, seconds, stream }) {
      const labels = {
        method: methods.has(method) ? method : '_other',
        route,
        status: status === undefined ? 'aborted' : `${Math.floor(status / 100)}xx`,
      };
      requests.inc(labels);
      if (stream === undefined) duration.observe(labels, seconds);
    },
    onStream: (mode) => streams.inc({ mode }),
    onStreamResumed(gap) {
      resumes.inc();
      gaps.observe(gap);
    },
    onStreamDropped: (reason) => dropped.inc({ reason }),
    onRefused: (reason) => refused.inc({ reason }),
    onAuthentication: (kind, outcome) => authentications.inc({ kind, outcome }),
    onRateLimited: (limit) => rateLimited.inc({ limit }),
  };
}
