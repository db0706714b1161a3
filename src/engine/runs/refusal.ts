import { RivuletError } from '../../core/errors.ts';

/** What the work returns, or the error with which it refuses a request. @throws any other error */
export function orRefusal<T>(work: () => T): T | RivuletError {
  try {
    return work();
  } catch (error) {
    if (error instanceof RivuletError) return error;
    throw error;
  }
}
