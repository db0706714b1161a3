import { allOf } from '../../core/all-of.ts';
import type { Store } from '../../core/ports/store.ts';

type Parted = Pick<Store, 'partitions'>;

/**
 * Does background work for each part of a store at once, so that a part that is away keeps only its own work waiting. Most
 * stores are one part. Rejects with the first error, when the work for all parts has ended.
 */
export async function eachPart(store: Parted, work: (part: number) => Promise<void>): Promise<void> {
  await allOf(partsOf(store).map(work));
}

/** The numbers of the parts of a store. */
export const partsOf = ({ partitions }: Parted): number[] =>
  Array.from({ length: partitions?.count ?? 1 }, (_, part) => part);

/** The ids that belong to a part of a store. */
export const idsOfPart = ({ partitions }: Parted, ids: Iterable<string>, part: number): string[] =>
  [...ids].filter((id) => partitions === undefined || partitions.of(id) === part);
