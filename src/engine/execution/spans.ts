import { defer, Observable } from 'rxjs';
import { errorOf } from '../../core/errors.ts';
import type { AgentSpan, WorkEnd, WorkSpan } from '../../core/ports/traces.ts';

/**
 * Work inside of its span, which ends with the work. What it emits is received inside of `outer`, so that what follows
 * from it belongs to the agent, and not to the work. Without spans, the work as it is.
 */
export function inSpan<T>(
  work: () => Observable<T>,
  span: WorkSpan | undefined,
  outer: AgentSpan | undefined,
): Observable<T> {
  if (span === undefined || outer === undefined) return work();
  return new Observable((subscriber) => {
    let ended = false;
    const end = (how: WorkEnd): void => {
      if (!ended) span.end(how);
      ended = true;
    };
    subscriber.add(() => end({ outcome: 'cancelled' }));
    const doing = span.within(() =>
      defer(work).subscribe({
        next: (value) => outer.within(() => subscriber.next(value)),
        // The span ends first: the agent's next work begins in these calls.
        error: (error) => {
          end({ outcome: 'failed', error: errorOf(error) });
          outer.within(() => subscriber.error(error));
        },
        complete: () => {
          end({ outcome: 'completed' });
          outer.within(() => subscriber.complete());
        },
      }),
    );
    subscriber.add(doing);
  });
}
