import { defer, Observable, type ObservableInput, Subscription } from 'rxjs';
import { errorOf, fail } from '../../core/errors.ts';
import { errorFromJournal, journaledError } from '../../core/journaled-error.ts';
import type { Extras } from '../../core/ports/run-store.ts';
import { guarded, reported } from '../unhandled.ts';
import type { Feed, StepDelivery } from './feed.ts';
import { fromAgent, type SourceHooks } from './from-agent.ts';
import type { Recorder } from './recorder.ts';
import type { Scope } from './scope.ts';

/** How a step's values are journaled, where the journal has another form of them. */
export interface Journaled<T> {
  /** The value's form in the journal. */
  save(value: T): unknown;
  /** The value, from its form in the journal. */
  load(saved: unknown): Promise<T>;
}

export interface Work<T> {
  readonly work: () => ObservableInput<T>;
  readonly again?: ((before: readonly T[]) => ObservableInput<T>) | undefined;
  readonly journaled?: Journaled<T> | undefined;
  /** See `StepReceiver`. */
  readonly sleeps?: boolean;
  /** What is stored in the same commit as a value. */
  readonly extras?: (() => Extras) | undefined;
}

/** A value that a step's work has emitted, and its JSON; undefined for undefined. */
interface Emitted<T> {
  readonly value: T;
  readonly text: string | undefined;
}

/** The steps of a durable run: their values are journaled, and come from the journal when the run is re-entered. */
export class Steps {
  readonly #recorder: Recorder;
  readonly #feed: Feed;
  readonly #source: SourceHooks;
  readonly #fail: (error: unknown) => void;
  /** For each step that the agent is subscribed to, the function that ends it. */
  readonly #open = new Set<(error: Error) => void>();

  constructor(recorder: Recorder, feed: Feed, source: SourceHooks, fail: (error: unknown) => void) {
    this.#recorder = recorder;
    this.#feed = feed;
    this.#source = source;
    this.#fail = fail;
  }

  /** See `AgentContext.step`. The agent gets the JSON form of each value, the first time as well as from the journal. */
  step<T>(scope: Scope, name: string, work: Work<T>): Observable<T> {
    return new Observable<T>((subscriber) => {
      const step = scope.nextStep(name);
      const { output } = scope;
      /** The values of an earlier execution as JSON, since the work began anew; `undefined` is a value as well. */
      let before: (string | undefined)[] = [];
      /** The agent's outputs when the first value came, since the work began anew. */
      let outputBefore: number | undefined;
      const working = new Subscription();
      let over = false;
      let begun = false;

      const end = (error: Error): void => {
        over = true;
        subscriber.error(error);
      };
      const give = (delivery: StepDelivery): void => {
        if ('error' in delivery) {
          end(reported(errorFromJournal(delivery.error), this.#fail));
        } else if ('done' in delivery) {
          over = true;
          subscriber.complete();
        } else if ('restarted' in delivery) {
          const [values, since] = [before, outputBefore];
          before = [];
          outputBefore = undefined;
          // In the work of another step, what is said is that step's.
          if (since !== undefined && output.emitted > since && scope.step === undefined)
            output.interrupt(since, values);
        } else {
          const [value] = delivery.value;
          outputBefore ??= output.emitted;
          if (!begun) before.push(JSON.stringify(value));
          // The work emitted it as a T before it was journaled.
          subscriber.next(value as T);
        }
      };
      // The agent goes on in the scope that it was in, and not in none.
      const deliver =
        scope.step === undefined ? give : (delivery: StepDelivery): void => scope.run(() => give(delivery));
      const begin = (): void => {
        if (over || subscriber.closed || begun) return;
        begun = true;
        working.add(this.#begin(scope, step, [...before], work));
      };
      this.#open.add(end);
      // Before the feed is joined: the step's work may end the run at once, and with it this subscription.
      let leave = (): void => {};
      subscriber.add(() => {
        this.#open.delete(end);
        leave();
        working.unsubscribe();
      });
      const isInside = scope.step !== undefined;
      leave = this.#feed.join(step, { deliver, begin, isInside, sleeps: work.sleeps, load: work.journaled?.load });
      if (subscriber.closed) leave();
    });
  }

  /** The run is over or cancelled: the open steps end with the reason, and their work stops. */
  end(reason: Error, onTeardownError: (error: unknown) => void): void {
    for (const end of [...this.#open]) guarded(() => end(reason), onTeardownError);
  }

  /** Does the work, and gives the agent its values, except those that an earlier execution gave. */
  #begin<T>(scope: Scope, step: string, before: readonly (string | undefined)[], how: Work<T>): Subscription {
    const { work, again, journaled, extras } = how;
    const name = JSON.stringify(step);
    const inside = scope.step === undefined ? '' : ',"inside":true';
    const continued = before.length > 0 && again !== undefined;
    /** The values that the agent has from an earlier execution, until the work has repeated them or differs from them. */
    let known = continued ? [] : before;
    /** Those that the work has repeated so far. */
    let repeated: Emitted<T>[] = [];
    const doing = new Subscription();
    if (!continued) this.#feed.takeBackUsage(step);
    const put = (delivery: StepDelivery, rest: string, more?: Extras): void => {
      const text = `{"step":${name},${rest}${inside}}`;
      this.#recorder.count(text.length);
      this.#feed.enqueue(delivery, text, more);
    };
    const putValue = ({ value, text }: Emitted<T>): void => {
      const given = journaled === undefined ? parsed(text) : value;
      put({ step, value: text === undefined ? [] : [given] }, `"value":[${text ?? ''}]`, extras?.());
    };
    const failed = (error: unknown): void => {
      const body = journaledError(error);
      put({ step, error: body }, `"error":${JSON.stringify(body)}`);
    };
    /** The work emits other values than before, as a model does. The agent gets all of them. */
    const restart = (): void => {
      put({ step, restarted: true }, '"restarted":true');
      known = [];
      for (const emitted of repeated) putValue(emitted);
      repeated = [];
    };
    /** An error of the engine ends the run; an error of the work ends the step only. */
    const recorded = (report: () => void): void => {
      try {
        report();
      } catch (error) {
        doing.unsubscribe();
        this.#fail(error);
      }
    };
    const next = (value: T): void => {
      let text: string | undefined;
      try {
        text = asJson(step, journaled === undefined ? value : journaled.save(value));
      } catch (error) {
        doing.unsubscribe();
        failed(error);
        return;
      }
      if (repeated.length < known.length && known[repeated.length] === text) {
        repeated.push({ value, text });
        if (repeated.length < known.length) return;
        known = [];
        repeated = [];
        return;
      }
      if (known.length > 0) restart();
      putValue({ value, text });
    };
    const complete = (): void => {
      if (known.length > 0) restart();
      put({ step, done: true }, '"done":true');
    };
    const values = (): T[] => before.map((text) => parsed(text) as T);
    const doWork = () => fromAgent(continued ? again(values()) : work(), this.#source);
    doing.add(
      scope.workOf(step, continued ? before.length : 0).run(() =>
        defer(doWork).subscribe({
          next: (emitted) => recorded(() => next(emitted)),
          error: (error) => recorded(() => failed(error)),
          complete: () => recorded(complete),
        }),
      ),
    );
    return doing;
  }
}

const parsed = (text: string | undefined): unknown => (text === undefined ? undefined : JSON.parse(text));

/**
 * The value as JSON text, or undefined for undefined.
 * @throws RivuletError `step_value_invalid`
 */
function asJson(step: string, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw fail('step_value_invalid', step, errorOf(error).message.split('\n', 1)[0] ?? '');
  }
  if (text === undefined) throw fail('step_value_invalid', step, `got ${typeof value}`);
  return text;
}
