import { fail } from '../core/errors.ts';
import { isUuid, uuidPattern } from '../schema/formats.ts';

// Ids that clients of other protocols hold. They are functions of a run and a number, such as that of an event: all nodes
// agree on them, and nothing is stored for them.

/** Ids such as `call_<run_id>_7`: a prefix, the run, and perhaps a separator and a number. */
export function runPlaceIds(prefix: string, separator: string) {
  const pattern = new RegExp(`^${prefix}(${uuidPattern})(?:[${separator}](0|[1-9]\\d{0,9}))?$`);
  return {
    of: (run_id: string, n?: number | string): string =>
      n === undefined ? `${prefix}${run_id}` : `${prefix}${run_id}${separator}${n}`,
    /** What an id says; undefined for a text that `of` does not make. `n` is undefined for an id without a number. */
    in(id: string) {
      const [, run_id, n] = pattern.exec(id) ?? [];
      return run_id === undefined ? undefined : { run_id, n: n === undefined ? undefined : Number(n) };
    },
  };
}

/** The run that an id names. An id that is no UUID names no run. @throws RivuletError `run_unknown` */
export function runIdIn(id: string): string {
  if (!isUuid(id)) throw fail('run_unknown', id.slice(0, 100));
  return id.toLowerCase();
}
