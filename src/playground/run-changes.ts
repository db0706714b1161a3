import { distinctUntilChanged, EMPTY, fromEvent, map, Observable, retry, share, startWith, switchMap } from 'rxjs';
import type { Client } from '../client/client.ts';
import type { RunSummary } from '../schema/run.ts';

/** The runs of the server that change; undefined where any of them may have changed. */
export type RunChanges = Observable<RunSummary | undefined>;

/** Milliseconds until the feed is asked for again after a refusal that the client does not repeat. */
const retryDelay = 5_000;

/**
 * The server's feed of runs, over one connection for all lists of the page. A hidden tab has none: a browser opens six
 * connections to a server over HTTP/1.1, for all its tabs together.
 */
export const watchRunChanges = (client: Client): RunChanges =>
  fromEvent(document, 'visibilitychange').pipe(
    startWith(undefined),
    map(() => document.visibilityState === 'visible'),
    distinctUntilChanged(),
    switchMap((visible) => (visible ? feed(client).pipe(retry({ delay: retryDelay })) : EMPTY)),
    share(),
  );

/** The lists load their pages when the feed has begun, so no change is missed between both. */
const feed = (client: Client): RunChanges =>
  new Observable((subscriber) => {
    const onAny = (): void => subscriber.next(undefined);
    return client.watchRuns({ limit: 1 }, { onReady: onAny, onReset: onAny }).subscribe(subscriber);
  });
