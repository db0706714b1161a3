import { AgentError, citation, defineAgent, type MessagePart } from 'rivulet';
import { asyncScheduler, concatMap, distinct, from, scan, scheduled, take, toArray } from 'rxjs';
import { read, type Sentence, sentencesOf } from './_sentences.ts';
import { textRank } from './_text-rank.ts';

const maxSentences = 500; // ranking compares each pair

const rivers =
  'A river begins at a source: a spring, a lake or the end of a glacier. Rain and melting snow feed the river on its way. ' +
  'Smaller rivers join it and carry sand and stones into it. Where the land is steep, the river cuts a valley. ' +
  'Where the land is flat, the river slows down and leaves the sand and the stones behind. ' +
  'Most rivers end in the sea, where the sand that a river carries forms a delta.';

/** Selects the most important sentences of the text, and cites their sources. */
export default defineAgent(
  {
    name: 'summarize',
    description: 'Summarizes text by its own most telling sentences, each with a citation.',
    input_content_types: ['text/plain', 'text/markdown'],
    output_content_types: ['text/plain'],
    metadata: {
      license: 'MIT',
      programming_language: 'TypeScript',
      tags: ['example', 'citations'],
      examples: [{ title: 'Summarize a text about rivers', prompt: rivers }],
    },
  },
  (input) =>
    from(input.flatMap(({ parts }) => parts)).pipe(
      // Each piece gets a turn of the event loop, so that a long text does not block other runs.
      concatMap((part) => scheduled(read(part), asyncScheduler)),
      concatMap(sentencesOf),
      take(maxSentences),
      distinct(({ text }) => text),
      toArray(),
      concatMap(mostImportant),
      scan(({ end }, sentence) => cite(sentence, end), nothing),
      concatMap(({ parts }) => parts),
    ),
);

/** The highest-ranked sentences in the order of the text; up to five, depending on its length. */
function mostImportant(sentences: readonly Sentence[]): Sentence[] {
  if (sentences.length === 0) {
    throw new AgentError(
      'invalid_input',
      'There is nothing to summarize: send text/plain or text/markdown with words.',
    );
  }
  const count = Math.min(5, Math.round(Math.sqrt(sentences.length)));
  return Array.from(textRank(sentences.map(({ text }) => text)))
    .map((score, index) => ({ score, index }))
    .sort((a, b) => b.score - a.score)
    .slice(0, count)
    .sort((a, b) => a.index - b.index)
    .flatMap(({ index }) => sentences[index] ?? []);
}

interface Cited {
  /** The length of the summary so far. */
  readonly end: number;
  readonly parts: readonly MessagePart[];
}
const nothing: Cited = { end: 0, parts: [] };

/** A sentence of the summary and its citation; `length` is the summary's length before it. */
function cite({ text, title }: Sentence, length: number): Cited {
  const space = length === 0 ? '' : ' ';
  const sentence = text.replace(/\s+/g, ' ');
  const start_index = length + space.length;
  const end_index = start_index + sentence.length;
  return {
    end: end_index,
    parts: [
      { content_type: 'text/plain', content: `${space}${sentence}` },
      citation({ start_index, end_index, description: text, ...(title && { title }) }),
    ],
  };
}
