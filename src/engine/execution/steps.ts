import { defer, Observable, type ObservableInput, Subscription } from 'rxjs';
import { agentErrorOf, errorOf, fail } from '../../core/errors.ts';
import { fromAgent, type Source } from '../../core/from-agent.ts';
import type { Recorder } from './recorder.ts';
import type { StepEntry } from './replay.ts';

/**
 * The steps of a durable run: their values are journaled, and come from the journal when the run is re-entered.
 * A step is known by its name and how many of that name were subscribed to before.
 */
export class Steps {
  readonly #recorder: Recorder;
  readonly #source: Source;
  readonly #counts = new Map<string, number>();

  constructor(recorder: Recorder, source: Source) {
    this.#recorder = recorder;
    this.#source = source;
  }

  /** See `AgentContext.step`. Values are passed on as JSON has them, the first time as well as from the journal. */
  step<T>(
    name: string,
    work: () => ObservableInput<T>,
    again?: (before: readonly T[]) => ObservableInput<T>,
  ): Observable<T> {
    return new Observable<T>((subscriber) => {
      const count = this.#counts.get(name) ?? 0;
      this.#counts.set(name, count + 1);
      const step = `${name}#${count}`;
      const before: T[] = [];
      const working = new Subscription();
      let over = false;

      const give = (entry: StepEntry): void => {
        if ('error' in entry) {
          over = true;
          subscriber.error(agentErrorOf(entry.error));
        } else if ('done' in entry) {
          over = true;
          subscriber.complete();
        } else {
          // What was journaled was a T when the work emitted it.
          const value = entry.value as T;
          before.push(value);
          subscriber.next(value);
        }
      };
      const begin = (): void => {
        if (!over && !subscriber.closed) working.add(this.#work(step, before, work, again).subscribe(subscriber));
      };
      const { replay } = this.#recorder;
      if (replay === undefined) begin();
      else replay.join(step, give, begin);
      return working;
    });
  }

  /** Does the work, and journals what comes of it; what an earlier life has passed on is not passed on again. */
  #work<T>(
    step: string,
    before: readonly T[],
    work: () => ObservableInput<T>,
    again: ((before: readonly T[]) => ObservableInput<T>) | undefined,
  ): Observable<T> {
    const recorder = this.#recorder;
    return new Observable<T>((subscriber) => {
      const continued = before.length > 0 && again !== undefined;
      let known = continued ? 0 : before.length;
      const at = (): number => recorder.log.row.last;
      return defer(() => fromAgent(continued ? again(before) : work(), this.#source)).subscribe({
        next: (emitted) => {
          const value = asJson(emitted);
          if (known > 0) {
            const expected = before[before.length - known];
            known -= 1;
            const [a, b] = [JSON.stringify(expected), JSON.stringify(value)];
            if (a !== b) subscriber.error(fail('replay_diverged', `step ${step}`, a, b));
            return;
          }
          recorder.journal({ at: at(), step, value });
          subscriber.next(value);
        },
        error: (error) => {
          recorder.journal({ at: at(), step, error: errorOf(error) });
          subscriber.error(error);
        },
        complete: () => {
          recorder.journal({ at: at(), step, done: true });
          subscriber.complete();
        },
      });
    });
  }
}

function asJson<T>(value: T): T {
  return typeof value === 'object' && value !== null ? JSON.parse(JSON.stringify(value)) : value;
}
