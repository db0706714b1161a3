/** The candidate that a mistyped word most probably means; undefined if none is similar. */
export function closest(word: string, candidates: readonly string[]): string | undefined {
  const typed = word.toLowerCase();
  const ranked = candidates
    .map((candidate) => ({ candidate, edits: editsBetween(typed, candidate.toLowerCase()) }))
    .filter(({ candidate, edits }) => edits <= 3 && edits < Math.max(candidate.length, typed.length) * 0.6)
    .sort((a, b) => a.edits - b.edits);
  return ranked[0]?.candidate;
}

/** The number of characters to insert, remove, replace or swap with the next one. */
function editsBetween(a: string, b: string): number {
  let [beforeLast, last]: number[][] = [[], Array.from({ length: b.length + 1 }, (_, at) => at)];
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (last?.[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = isSwap ? (beforeLast?.[j - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY;
      row[j] = Math.min((last?.[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1, replaced, swapped);
    }
    [beforeLast, last] = [last, row];
  }
  return last?.[b.length] ?? 0;
}
