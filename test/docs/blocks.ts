import { readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';

export const root = resolve(import.meta.dirname, '../..');

/** README and every page of docs, by their paths in the repository. */
export const pages: readonly string[] = [
  'README.md',
  ...readdirSync(resolve(root, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

export const readPage = (page: string): string => readFileSync(resolve(root, page), 'utf8');

/**
 * A code block of a page. HTML comments right above a block tell the tests what to do with it:
 *
 *     pending: testing               it needs a part that is not there yet
 *     not run: REASON                it cannot run in a test
 *     file: agents/clock.ts          its name, under which other blocks of the page import it
 *     say: Hi | reply: yes | expect: Done.    what its agent is told, and what the answer contains
 *     shape: Run                     the JSON has the schema that `rivulet` exports under this name
 *     before: CODE, after: CODE      code that belongs to the block, but not into the page
 */
export interface Block {
  readonly page: string;
  /** Of its first fence, from 1. */
  readonly line: number;
  /** `README.md:12` */
  readonly place: string;
  readonly language: string;
  readonly text: string;
  readonly marks: ReadonlyMap<string, string>;
  /** The block that stands right behind it and shows what it prints. */
  readonly output: Block | undefined;
}

const fence = /^(?:<!--\s*(?<mark>[a-z ]+):(?<value>[\s\S]*?)-->|```(?<language>\w*)\n(?<text>[\s\S]*?)^```$)/gm;
const outputs = ['text', 'json', 'http'];

function blocksIn(page: string): Block[] {
  const source = readPage(page);
  const blocks: { -readonly [K in keyof Block]: Block[K] }[] = [];
  let marks = new Map<string, string>();
  let end = 0;
  for (const { groups = {}, index, 0: all } of source.matchAll(fence)) {
    const between = source.slice(end, index).trim();
    end = index + all.length;
    if (between !== '') marks = new Map();
    if (groups.mark !== undefined) {
      marks.set(groups.mark.trim(), groups.value?.trim() ?? '');
      continue;
    }
    const line = source.slice(0, index).split('\n').length;
    const { language = '', text = '' } = groups;
    const block = { page, line, place: `${page}:${line}`, language, text, marks, output: undefined };
    const last = blocks.at(-1);
    if (last !== undefined && between === '' && outputs.includes(language)) last.output = block;
    blocks.push(block);
    marks = new Map();
  }
  return blocks;
}

export const blocks: readonly Block[] = pages.flatMap(blocksIn);

/** Whether a test runs the block now. */
export const runs = ({ marks }: Block): boolean => !marks.has('pending') && !marks.has('not run');

export const inLanguage = (...languages: readonly string[]): Block[] =>
  blocks.filter((block) => languages.includes(block.language) && runs(block));

/** The block as a program: with what belongs to it, and the address of the test's server. */
export const programOf = ({ text, marks }: Block, url: string): string =>
  atServer([marks.get('before') ?? '', text, marks.get('after') ?? ''].join('\n'), url);

/** The documented address replaced by the one that the test listens on. */
const atServer = (text: string, url: string): string =>
  text.replaceAll('127.0.0.1:8000', new URL(url).host).replaceAll('localhost:8000', new URL(url).host);

const changing: readonly [RegExp, string][] = [
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/g, 'ID'],
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, 'TIME'],
  [/127\.0\.0\.1:\d+/g, 'SERVER'],
];

/** A text with ids, times and addresses, which differ from run to run, replaced by one word each. */
export const stable = (text: string): string =>
  changing.reduce((changed, [pattern, word]) => changed.replace(pattern, word), text);

/** The lines of what a page shows that a program did not print, in this order. A line that is … stands for any. */
export function missingLines(shown: string, printed: string): string[] {
  let rest = stable(printed);
  return stable(shown)
    .split('\n')
    .filter((line) => line.trim() !== '' && line.trim() !== '…')
    .filter((line) => {
      const at = rest.indexOf(line.trimEnd());
      if (at >= 0) rest = rest.slice(at + line.length);
      return at < 0;
    });
}
