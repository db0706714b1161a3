import { Observable, Subscriber } from 'rxjs';
import type { AgentOutput } from './agent.ts';

/** Takes the place of half a surrogate pair whose other half did not follow. */
const replacement = '\ufffd';

const isFirstHalf = (unit: number): boolean => (unit & 0xfc00) === 0xd800;
const isSecondHalf = (unit: number): boolean => (unit & 0xfc00) === 0xdc00;

/** Whether output may come between the halves of a pair: nothing, an empty text or a generic event. */
const isBeside = (output: AgentOutput): boolean =>
  output === undefined || output === '' || (typeof output === 'object' && output !== null && 'generic' in output);

/**
 * Joins surrogate pairs that an agent cut over two texts. No UTF-8 exists for half a pair: some clients refuse it, and
 * others replace it. The first half is held back, and becomes the beginning of the next text. There is one for each agent
 * of a run, because texts of several agents may follow in another order in a replay.
 */
export class PairJoiner extends Subscriber<AgentOutput> {
  #half = '';

  protected override _next(output: AgentOutput): void {
    // The only check for nearly all tokens.
    const cut = typeof output === 'string' && isFirstHalf(output.charCodeAt(output.length - 1));
    if (!cut && this.#half === '') super._next(output);
    else if (typeof output === 'string' && output !== '') this.#join(output);
    else {
      if (!isBeside(output)) this.#giveUp();
      super._next(output);
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
    if (end > 0) super._next(joined.slice(0, end));
  }

  #giveUp(): void {
    if (this.#half === '') return;
    this.#half = '';
    super._next(replacement);
  }
}

/** The output of an agent that is called, with its pairs joined. `begin` runs for each subscription. */
export const joinPairs = (begin: () => Observable<AgentOutput>): Observable<AgentOutput> =>
  new Observable((subscriber) => begin().subscribe(new PairJoiner(subscriber)));
