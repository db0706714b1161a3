/**
 * Fails on words that the project does not use, in the code, its comments and texts, and the documents:
 * `npm run check:words`, or `npm run check:words -- src/engine` for a part of the tree.
 * CONTRIBUTING.md has the terms to use in their place.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

/** Each with the term to use. */
const words: readonly [RegExp, string][] = [
  [/\b(whoever|whomever|who|whom)\b/i, 'name the subject: the client, the reader, the node, the caller'],
  [/\b(somebody|someone|nobody|anybody|anyone|everybody|no one)\b/i, 'name the subject'],
  [/\b(neighbou?rs?|parcels?|hints?|wish(es)?)\b/i, 'node, commit, notification, offer'],
  [/\b(patience|patient)\b/i, 'requestTimeout'],
  [/\bnews\b/i, 'notification or event'],
  [/\b(without a gap|gap or (a )?double)\b/i, 'no missing or duplicate events'],
  [/\b(in good order|lies? about|die young)\b/i, 'say it plainly'],
  [/\b(misfit|lost_race|store_away|unforeseen)\b/, 'validation_failed, conflict, store_unavailable, internal_error'],
  [/\b(silence|lookEvery|stopTime|keepKeys)\b/, 'idleTimeout, pollInterval, shutdownGrace, idempotencyTtl'],
];

interface Finding {
  readonly file: string;
  readonly line: number;
  readonly text: string;
  readonly instead: string;
}

function findingsIn(file: string): Finding[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((text, index) =>
      words.flatMap(([word, instead]) => {
        const found = word.exec(text)?.[0];
        return found === undefined ? [] : [{ file, line: index + 1, text: found, instead }];
      }),
    );
}

/** The list itself, and the names that --limit takes for compatibility. */
const exempt = ['test/words.ts', 'src/cli/settings/options.ts', 'test/cli/serve-start.servers.ts'];
const files = execFileSync('git', ['ls-files', '-co', '--exclude-standard', ...process.argv.slice(2)], {
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => /\.(tsx?|mjs|css|html|md)$/.test(file) && existsSync(file) && !exempt.includes(file))
  .filter((file) => !file.startsWith('bench/contestants/peers'));
const findings = files.flatMap(findingsIn);
for (const { file, line, text, instead } of findings) console.log(`${file}:${line}  "${text}": ${instead}`);
console.log(
  findings.length === 0 ? `${files.length} files: no word to replace` : `${findings.length} words to replace`,
);
process.exitCode = findings.length === 0 ? 0 : 1;
