import { parseDocument } from 'yaml';
import { checkKeyRecords, type KeyRecord } from './key-records.ts';

// In a file of its own: all commands read the settings of keys, and few need the parser and its 73 files.

/** What to do where a file of keys is missing. */
export const makeKeyFile = (path: string): string =>
  `make one with: npx rivulet keys new --principal NAME --file ${path}`;

/** The records of a file: a list in YAML or JSON, or nothing. @throws Error with the place of a mistake */
export function parseKeyFile(source: string): readonly KeyRecord[] {
  const document = parseDocument(source);
  const [problem] = document.errors;
  if (problem !== undefined) throw new Error(`expected YAML or JSON: ${problem.message.split('\n', 1)[0]}`);
  // Few aliases: nested ones would multiply to a list that fills the memory.
  return checkKeyRecords(document.toJS({ maxAliasCount: 10 }));
}
