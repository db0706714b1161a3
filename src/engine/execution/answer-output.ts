import { concat, defer, from, ignoreElements, type Observable, tap } from 'rxjs';
import type { AgentOutput } from '../../core/agent.ts';
import type { Output } from './scope.ts';

/** The output of a called agent whose answer is awaited: kept until the agent is done. */
export class AnswerOutput implements Output {
  #kept: AgentOutput[] = [];

  get emitted(): number {
    return this.#kept.length;
  }

  /** What the agent has emitted, at its end. */
  of(said: Observable<AgentOutput>): Observable<AgentOutput> {
    const keeping = said.pipe(
      tap((output) => void this.#kept.push(output)),
      ignoreElements(),
    );
    return concat(
      keeping,
      defer(() => from(this.#kept)),
    );
  }

  /** Leaves out the values of the step that the agent has passed on unchanged. Its other output stays. */
  interrupt(since: number, values: readonly (string | undefined)[]): void {
    // An empty text is no output.
    const passedOn = values.filter((value) => value !== '""');
    let next = 0;
    this.#kept = this.#kept.filter((output, index) => {
      const isPassedOn = index >= since && next < passedOn.length && JSON.stringify(output) === passedOn[next];
      if (isPassedOn) next += 1;
      return !isPassedOn;
    });
  }
}
