import { finalStatuses } from '../../core/run-state.ts';

/** A script of Redis: its text in Lua, with the type of a call of it, without the keys. */
export interface Script<Call extends (...args: never[]) => unknown> {
  readonly lua: string;
  /** Only a type: no script has this field. */
  readonly call?: Call;
}

export const script = <Call extends (...args: never[]) => unknown>(lua: string): Script<Call> => ({ lua });

/**
 * The keys that every script declares: the prefix, which is no key itself, and the version of the layout, which is always
 * there. While a cluster moves their slot, a node has the one and lacks the other; so it answers TRYAGAIN, and no script
 * runs where half of the data is. `KEYS[1]` is the prefix.
 */
export type ScriptKeys = readonly [prefix: string, version: string];

export const scriptKeys = (prefix: string): ScriptKeys => [prefix, `${prefix}version`];

/** For scripts that ask whether a run has ended. */
export const finalStatusesInLua = `local final = { ${finalStatuses.map((status) => `${status} = true`).join(', ')} }`;
