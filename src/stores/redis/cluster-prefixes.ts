import calculateSlot from 'cluster-key-slot';

/** The parts of a store in a cluster. So many primaries can share it evenly: 2, 3, 4, 6 or 12. It is part of the layout. */
export const clusterParts = 12;

const slots = 16_384;

/**
 * The prefixes of the parts. Each is the hash tag of one slot, and the slots are as far from each other as possible, because a
 * primary has a range of them.
 */
export const clusterPrefixes = (prefix: string, parts = clusterParts): string[] =>
  Array.from({ length: parts }, (_, part) => {
    const [begin, end] = [Math.floor((part * slots) / parts), Math.floor(((part + 1) * slots) / parts)];
    for (let attempt = 0; ; attempt += 1) {
      const tag = `${prefix}/${part}.${attempt}`;
      const slot = calculateSlot(tag);
      if (slot >= begin && slot < end) return tag;
    }
  });
