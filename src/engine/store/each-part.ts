import { allOf } from '../../core/all-of.ts';
import type { Store } from '../../core/ports/store.ts';

type Parted = Pick<Store, 'partitions'>;

/**
 * Does background work for each part of a store at once, so that the work for other parts is done where one is away. Most
 * stores are one part. Resolves, or rejects with the first error, when the work for all parts has ended.
 */
export async function eachPart(store: Parted, work: (part: number) => Promise<void>): Promise<void> {
  await allOf(partsOf(store).map(work));
}

/** The numbers of the parts of a store. */
export const partsOf = ({ partitions }: Parted): number[] =>
  Array.from({ length: partitions?.count ?? 1 }, (_, part) => part);

/** The ids that belong to a part of a store. */
export const idsOfPart = ({ partitions }: Parted, ids: Iterable<string>, part: number): string[] =>
  partitions === undefined ? [...ids] : [...ids].filter((id) => partitions.of(id) === part);
