import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { stringify } from 'yaml';
import { messageOf } from '../../core/json.ts';
import { makeApiKey } from '../../http/auth/api-key.ts';
import { parseKeyFile } from '../../http/auth/key-file.ts';
import { checkKeyRecords, type KeyRecord, recordOf, userScopes } from '../../http/auth/key-records.ts';
import { utcOf } from '../../schema/formats.ts';
import { exit, UsageError } from '../exit-codes.ts';
import { terminal } from '../terminal/terminal.ts';

interface KeyOptions {
  readonly principal: string;
  readonly scope: readonly string[];
  readonly tenant?: string;
  readonly agent: readonly string[];
  readonly expires?: string;
  readonly note?: string;
  readonly file?: string;
}

/**
 * Makes an API key, prints it, and adds its record to a file, or prints that as well. The key is on a line of its own on
 * stdout, so that a program can read it; it is not stored anywhere.
 * @throws UsageError that names the wrong option or file
 */
export async function newKey({ principal, scope, tenant, agent, expires, note, file }: KeyOptions): Promise<number> {
  const { key } = makeApiKey();
  const record = {
    ...recordOf(key, { principal, scopes: scope.length > 0 ? scope : userScopes }),
    tenant,
    ...(agent.length > 0 && { agents: [...agent] }),
    ...(expires !== undefined && { expires_at: expiryOf(expires) }),
    note,
  };
  const text = stringify(valid(() => checkKeyRecords([record])));
  if (file !== undefined) append(file, text);
  terminal.print(key);
  if (file === undefined) {
    terminal.note('Add this to the file of --keys. The key itself is not shown again.\n');
    terminal.note(text.trimEnd());
  } else terminal.note(`The record of the key is in ${file}. The key itself is not shown again.`);
  return exit.completed;
}

/** A date stands for its beginning in UTC. */
function expiryOf(text: string): string {
  const time = utcOf(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text);
  if (time === undefined || Date.parse(time) <= Date.now()) {
    throw new UsageError(`--expires: expected a date or time to come, such as 2099-01-31, got ${JSON.stringify(text)}`);
  }
  return time;
}

/** Only the user may read and write a new file. */
function append(file: string, text: string): void {
  const before = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const added = before === '' || before.endsWith('\n') ? text : `\n${text}`;
  let records: readonly KeyRecord[] = [];
  valid(() => {
    const known = parseKeyFile(before);
    try {
      records = parseKeyFile(before + added);
    } catch {}
    if (records.length !== known.length + 1) {
      throw new Error(`${file}: expected a YAML list with a "-" for each record; add the record by hand`);
    }
  });
  appendFileSync(file, added, { mode: 0o600 });
}

function valid<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    throw new UsageError(messageOf(error));
  }
}
