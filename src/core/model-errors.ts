import { AgentError } from './errors.ts';

/** The error of an answer without the mark of its end. */
export const brokenOff = (): AgentError =>
  new AgentError('llm_error', 'The answer of the model broke off: its stream had no end mark.');

/**
 * The error of a connection that broke in the middle of an answer, from what a library has thrown; undefined for any other
 * error. Libraries wrap what `fetch` of Node throws, or pass on its message, "terminated".
 */
export function brokenConnection(thrown: unknown): AgentError | undefined {
  for (let error = thrown, depth = 0; error instanceof Error && depth < 10; error = error.cause, depth += 1) {
    if (error.name !== 'TypeError' || error.message !== 'terminated') continue;
    const why = error.cause instanceof Error ? `: ${error.cause.message}` : '';
    const text = `The connection to the model broke before the end of its answer${why}.`;
    return Object.assign(new AgentError('llm_error', text), { cause: thrown });
  }
  return undefined;
}
