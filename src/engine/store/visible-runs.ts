import type { RunFilter, RunLists } from '../../core/ports/run-lists.ts';
import type { RunRow } from '../../core/ports/run-store.ts';
import { pages } from './pages.ts';

/** Whether a caller may see a run. */
export type RunTest = (run: Pick<RunRow, 'owner' | 'agent_name'>) => boolean;

/** Whether a caller may see an agent, and so its runs. */
export type IsVisible = (agent_name: string) => boolean;

/** Runs of a filter that a caller may see. Stores do not know the names with `*` that limit a caller. */
export interface VisibleRuns extends RunFilter {
  /** Default: all agents. */
  readonly isVisible?: IsVisible;
}

/** Items of one read, and items after which a page ends, full or not. */
const itemsPerRead = 500;
const maxRead = 10_000;

export interface VisiblePage<T> {
  readonly items: T[];
  /** The last item that was read, where the page ends early and the list may have more. */
  readonly readTo?: T;
}

/** The first items of a list that pass, at most `limit`. `read` returns the items after one, in the order of the list. */
export async function visiblePage<T>(
  read: (after: T | undefined, limit: number) => Promise<T[]>,
  isVisible: (item: T) => boolean | Promise<boolean>,
  limit: number,
): Promise<VisiblePage<T>> {
  const items: T[] = [];
  let left = maxRead;
  for await (const found of pages(itemsPerRead, read)) {
    for (const item of found) {
      if (await isVisible(item)) items.push(item);
      if (items.length === limit) return { items };
    }
    left -= found.length;
    const readTo = found.at(-1);
    if (left <= 0 && readTo !== undefined) return { items, readTo };
  }
  return { items };
}

/** The newest runs that a caller may see; only those made before the run `before`, if it is given. */
export async function visibleRuns(
  store: RunLists,
  { isVisible, ...filter }: VisibleRuns,
  before: string | undefined,
  limit: number,
): Promise<VisiblePage<RunRow>> {
  const { agent_name } = filter;
  if (agent_name !== undefined && isVisible?.(agent_name) === false) return { items: [] };
  if (isVisible === undefined || agent_name !== undefined) return { items: await store.runs(filter, before, limit) };
  return visiblePage(
    (after, count) => store.runs(filter, after?.run_id ?? before, count),
    (row) => isVisible(row.agent_name),
    limit,
  );
}
