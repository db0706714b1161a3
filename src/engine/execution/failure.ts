import type { ErrorBody } from '../../schema/error.ts';

/** Characters of a stack in the server's log. */
const mostStack = 8 * 1024;

/**
 * What the server's log has about a run that failed. Of what the agent threw it has the stack only: fields of an error,
 * such as an HTTP client's request, may hold keys. Passwords and queries of URLs are left out.
 */
export const failureOf = ({ message }: ErrorBody, thrown: unknown): string =>
  withoutSecrets(stackOf(thrown)?.slice(0, mostStack) ?? message);

/** Anything may be thrown, so that any look at it may throw as well. */
function stackOf(thrown: unknown): string | undefined {
  try {
    return thrown instanceof Error && typeof thrown.stack === 'string' ? thrown.stack : undefined;
  } catch {
    return undefined;
  }
}

// From the beginning of a word only: a long word would be searched again from each of its characters.
const withoutSecrets = (text: string): string =>
  text.replace(/\b(\w+:\/\/)[^\s/?#@]*@/g, '$1').replace(/(https?:\/\/[^\s?#]*)[?#][^\s)'"]*/g, '$1');
