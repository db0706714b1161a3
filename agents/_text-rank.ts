const segmenter = new Intl.Segmenter('en', { granularity: 'word' });
const damping = 0.85;
const rounds = 20;

/**
 * The importance of each sentence, after TextRank (Mihalcea and Tarau, 2004): sentences vote for those that they share
 * words with, and the votes of an important sentence count more.
 * Plain loops, because they visit each pair of sentences many times.
 */
export function textRank(sentences: readonly string[]): Float64Array {
  const rows = similarities(sentences.map(wordsOf));
  const sums = rows.map((row) => row.reduce((sum, value) => sum + value, 0));
  let scores = new Float64Array(rows.length).fill(1);
  for (let round = 0; round < rounds; round += 1) {
    const next = new Float64Array(rows.length).fill(1 - damping);
    for (const [from, row] of rows.entries()) {
      const share = (damping * at(scores, from)) / (sums[from] || 1);
      for (let to = 0; to < row.length; to += 1) next[to] = at(next, to) + share * at(row, to);
    }
    scores = next;
  }
  return scores;
}

function wordsOf(sentence: string): Set<string> {
  const segments = [...segmenter.segment(sentence.toLowerCase())];
  return new Set(segments.filter(({ isWordLike }) => isWordLike).map(({ segment }) => segment));
}

/** The similarity of each two sentences. Rare words count more, so no list of stop words is needed. */
function similarities(bags: readonly Set<string>[]): Float64Array[] {
  const sizes = Float64Array.from(bags, (bag) => Math.log(1 + bag.size));
  const sentencesByWord = new Map<string, number[]>();
  for (const [index, bag] of bags.entries()) {
    for (const word of bag) {
      const known = sentencesByWord.get(word);
      if (known === undefined) sentencesByWord.set(word, [index]);
      else known.push(index);
    }
  }
  const rows = bags.map(() => new Float64Array(bags.length));
  for (const [index, row] of rows.entries()) {
    for (const word of bags[index] ?? []) {
      const others = sentencesByWord.get(word) ?? [];
      const rarity = Math.log(bags.length / others.length);
      for (const other of others) row[other] = at(row, other) + rarity / (at(sizes, index) + at(sizes, other));
    }
    row[index] = 0; // a sentence does not vote for itself
  }
  return rows;
}

/** The index is always in range, which the type does not express. */
const at = (row: Float64Array, index: number): number => row[index] ?? 0;
