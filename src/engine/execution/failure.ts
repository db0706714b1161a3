import { type JournaledError, journaledError } from '../../core/journaled-error.ts';
import type { ErrorBody } from '../../schema/error.ts';

/** Characters of the stacks of an error and its causes in the server's log. */
const mostTrace = 16 * 1024;

/**
 * What the server's log has about a run that failed: the stack of what the agent threw, and the stacks of its causes. Other
 * fields of an error, such as an HTTP client's request, may hold keys. Passwords and queries of URLs are left out.
 */
export const failureOf = ({ message }: ErrorBody, thrown: unknown): string =>
  withoutSecrets([...tracesOf({ ...journaledError(thrown), message })].join('\nCaused by: ').slice(0, mostTrace));

function* tracesOf({ name, message, stack, cause, errors = [] }: JournaledError): Generator<string> {
  yield stack ?? (name === undefined ? message : `${name}: ${message}`);
  const causes = cause !== undefined && 'error' in cause ? [cause.error, ...errors] : errors;
  for (const one of causes) yield* tracesOf(one);
  if (cause !== undefined && 'value' in cause && typeof cause.value === 'string') yield cause.value;
}

// From the beginning of a word only: a long word would be searched again from each of its characters.
const withoutSecrets = (text: string): string =>
  text.replace(/\b(\w+:\/\/)[^\s/?#@]*@/g, '$1').replace(/(https?:\/\/[^\s?#]*)[?#][^\s)'"]*/g, '$1');
