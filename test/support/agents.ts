import { concat, defer, from, map, NEVER, Observable, of, range } from 'rxjs';
import { type Agent, type AgentFunction, type AgentOptions, defineAgent } from '../../src/index.ts';

/** An agent of one function, for a test. */
export const agent = (name: string, run: AgentFunction, more: object = {}): Agent =>
  defineAgent({ name, description: `The test's ${name}.`, ...more }, run);

/** A durable agent of one function, for a test. */
export const durable = (name: string, run: AgentFunction, options: AgentOptions = {}): Agent =>
  defineAgent({ name, description: `The test's ${name}.` }, run, { durable: true, ...options });

export const echo = agent('echo', (input) => from(input));

/** Emits `n` tokens at once; `n` is the text of its input. */
export const tokens = agent('tokens', (input) =>
  range(0, Number(input[0]?.parts[0]?.content)).pipe(map((n) => `t${n} `)),
);

export const askOnce = agent('ask', (_, context) =>
  concat(of('before. '), context.await('Well?').pipe(map(({ message }) => `You said ${message.parts[0]?.content}.`))),
);

export const never = agent('never', () => NEVER);

/** A source that the test pushes to, one run at a time. */
export class Tap {
  #next: ((value: string) => void) | undefined;
  #done: (() => void) | undefined;
  #started: (() => void)[] = [];
  subscriptions = 0;
  unsubscriptions = 0;

  readonly agent: Agent;

  constructor(name = 'tap') {
    this.agent = agent(name, () =>
      defer(
        () =>
          new Observable<string>((subscriber) => {
            this.subscriptions += 1;
            this.#next = (value) => subscriber.next(value);
            this.#done = () => subscriber.complete();
            for (const resolve of this.#started.splice(0)) resolve();
            return () => {
              this.unsubscriptions += 1;
            };
          }),
      ),
    );
  }

  async started(): Promise<void> {
    if (this.#next === undefined) await new Promise<void>((resolve) => this.#started.push(resolve));
  }

  push(value: string): void {
    this.#next?.(value);
  }

  complete(): void {
    this.#done?.();
  }
}
