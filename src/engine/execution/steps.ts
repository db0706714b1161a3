import { defer, Observable, type ObservableInput, Subscription } from 'rxjs';
import { errorOf, fail } from '../../core/errors.ts';
import { fromAgent, type SourceHooks } from '../../core/from-agent.ts';
import { errorFromJournal, journaledError } from '../../core/journaled-error.ts';
import { reported } from '../unhandled.ts';
import type { Feed, StepDelivery } from './feed.ts';
import { guarded } from './guarded.ts';
import type { Recorder } from './recorder.ts';

/** How a step's values are journaled, where the journal has another form of them. */
export interface Journaled<T> {
  /** The value's form in the journal. */
  save(value: T): unknown;
  /** The value, from its form in the journal. */
  load(saved: unknown): Promise<T>;
}

interface Work<T> {
  readonly work: () => ObservableInput<T>;
  readonly again?: ((before: readonly T[]) => ObservableInput<T>) | undefined;
  readonly journaled?: Journaled<T> | undefined;
}

/**
 * The steps of a durable run: their values are journaled, and come from the journal when the run is re-entered.
 * A step's id is its name and the number of earlier subscriptions to that name.
 */
export class Steps {
  readonly #recorder: Recorder;
  readonly #feed: Feed;
  readonly #source: SourceHooks;
  readonly #fail: (error: unknown) => void;
  readonly #counts = new Map<string, number>();
  /** For each step that the agent is subscribed to, the function that ends it. */
  readonly #open = new Set<(error: Error) => void>();

  constructor(recorder: Recorder, feed: Feed, source: SourceHooks, fail: (error: unknown) => void) {
    this.#recorder = recorder;
    this.#feed = feed;
    this.#source = source;
    this.#fail = fail;
  }

  /** See `AgentContext.step`. The agent gets the JSON form of each value, the first time as well as from the journal. */
  step<T>(name: string, work: Work<T>): Observable<T> {
    return new Observable<T>((subscriber) => {
      const count = this.#counts.get(name) ?? 0;
      this.#counts.set(name, count + 1);
      const step = `${name}#${count}`;
      /** The values of an earlier execution as JSON; `undefined` is a value as well. */
      const before: (string | undefined)[] = [];
      const working = new Subscription();
      let over = false;
      let begun = false;

      const end = (error: Error): void => {
        over = true;
        subscriber.error(error);
      };
      const deliver = (gift: StepDelivery): void => {
        if ('error' in gift) {
          end(reported(errorFromJournal(gift.error), this.#fail));
        } else if ('done' in gift) {
          over = true;
          subscriber.complete();
        } else {
          const [value] = gift.value;
          if (!begun) before.push(JSON.stringify(value));
          // The work emitted it as a T before it was journaled.
          subscriber.next(value as T);
        }
      };
      const begin = (): void => {
        if (over || subscriber.closed || begun) return;
        begun = true;
        working.add(this.#begin(step, before, work));
      };
      this.#open.add(end);
      // Before the feed is joined: the step's work may end the run at once, and with it this subscription.
      let leave = (): void => {};
      subscriber.add(() => {
        this.#open.delete(end);
        leave();
        working.unsubscribe();
      });
      leave = this.#feed.join(step, { deliver, begin, ...(work.journaled && { load: work.journaled.load }) });
      if (subscriber.closed) leave();
    });
  }

  /** The run is over or cancelled: steps that the agent has not unsubscribed from end with the reason, and their work stops. */
  end(reason: Error, onTeardownError: (error: unknown) => void): void {
    for (const end of [...this.#open]) guarded(() => end(reason), onTeardownError);
  }

  /** Does the work and gives the agent its values, except those that an earlier execution gave. */
  #begin<T>(step: string, before: readonly (string | undefined)[], { work, again, journaled }: Work<T>): Subscription {
    const name = JSON.stringify(step);
    const continued = before.length > 0 && again !== undefined;
    const known = continued ? [] : [...before];
    const doing = new Subscription();
    const put = (gift: StepDelivery, rest: string): void => {
      const text = `{"step":${name},${rest}}`;
      this.#recorder.count(text.length);
      this.#feed.enqueue(gift, text);
    };
    const failed = (error: unknown): void => {
      const body = journaledError(error);
      put({ step, error: body }, `"error":${JSON.stringify(body)}`);
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
    const next = (emitted: T): void => {
      let text: string | undefined;
      try {
        text = asJson(step, journaled === undefined ? emitted : journaled.save(emitted));
      } catch (error) {
        doing.unsubscribe();
        failed(error);
        return;
      }
      if (known.length > 0) {
        const expected = known.shift();
        if (expected !== text) throw fail('replay_diverged', `step ${step}`, String(expected), String(text));
        return;
      }
      const value = journaled === undefined ? parsed(text) : emitted;
      put({ step, value: text === undefined ? [] : [value] }, `"value":[${text ?? ''}]`);
    };
    const values = (): T[] => before.map((text) => parsed(text) as T);
    doing.add(
      defer(() => fromAgent(continued ? again(values()) : work(), this.#source)).subscribe({
        next: (emitted) => recorded(() => next(emitted)),
        error: (error) => recorded(() => failed(error)),
        complete: () => recorded(() => put({ step, done: true }, '"done":true')),
      }),
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
