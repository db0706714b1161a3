import { Observable, type Observer, Subscriber } from 'rxjs';
import type { AgentOutput } from '../../core/agent.ts';
import { guarded } from '../unhandled.ts';

/** Takes the place of half a surrogate pair whose other half did not follow. */
const replacement = '\ufffd';

const isFirstHalf = (unit: number): boolean => (unit & 0xfc00) === 0xd800;
const isSecondHalf = (unit: number): boolean => (unit & 0xfc00) === 0xdc00;

/** Whether output may come between the halves of a pair: nothing, or a generic event. */
const isBeside = (output: AgentOutput): boolean =>
  output === undefined || (typeof output === 'object' && output !== null && 'generic' in output);

/** The text of a part that says no more than a token does; undefined for any other output. */
function tokenOf(output: AgentOutput): string | undefined {
  try {
    if (typeof output !== 'object' || output === null || !('content' in output)) return undefined;
    const { content, content_type = 'text/plain', ...more } = output;
    const isPlain = typeof content === 'string' && content_type === 'text/plain';
    return isPlain && Object.values(more).every((field) => field === undefined) ? content : undefined;
  } catch {
    // Foreign code, such as a getter. The check of the output names its error.
    return undefined;
  }
}

/**
 * Makes the texts of an agent well-formed, and leaves out empty ones. No UTF-8 exists for half a surrogate pair: some
 * clients refuse it, and others replace it. Pairs that an agent cut over two texts are joined: the first half is held
 * back, and becomes the beginning of the next text. There is one joiner for each agent of a run, because texts of several
 * agents may follow in another order in a replay.
 */
class PairJoiner extends Subscriber<AgentOutput> {
  #half = '';

  protected override _next(output: AgentOutput): void {
    const text = typeof output === 'string' ? output : tokenOf(output);
    if (text === undefined) {
      if (!isBeside(output)) this.#giveUp();
      super._next(output);
    } else if (text !== '') {
      if (this.#half === '' && text.isWellFormed()) super._next(output);
      else this.#join(text);
    }
  }

  protected override _complete(): void {
    this.#giveUp();
    super._complete();
  }

  #join(text: string): void {
    if (!isSecondHalf(text.charCodeAt(0))) this.#giveUp();
    const joined = this.#half + text;
    const end = isFirstHalf(text.charCodeAt(text.length - 1)) ? joined.length - 1 : joined.length;
    this.#half = joined.slice(end);
    if (end > 0) super._next(joined.slice(0, end).toWellFormed());
  }

  #giveUp(): void {
    if (this.#half === '') return;
    this.#half = '';
    super._next(replacement);
  }
}

/**
 * Subscribes an execution to its agent. It reports what a teardown of the agent throws. RxJS would throw that error into the
 * code that completes the agent, such as a timer, and end the process.
 */
export class AgentSubscriber extends PairJoiner {
  readonly #onTeardownError: (error: unknown) => void;

  constructor(execution: Observer<AgentOutput>, onTeardownError: (error: unknown) => void) {
    super(execution);
    this.#onTeardownError = onTeardownError;
  }

  override unsubscribe(): void {
    guarded(() => super.unsubscribe(), this.#onTeardownError);
  }
}

/** The output of an agent that is called, with its pairs joined. `begin` runs for each subscription. */
export const joinPairs = (begin: () => Observable<AgentOutput>): Observable<AgentOutput> =>
  new Observable((subscriber) => begin().subscribe(new PairJoiner(subscriber)));
