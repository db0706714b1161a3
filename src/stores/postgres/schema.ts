import { createHash } from 'node:crypto';
import { type Client, type ClientConfig, escapeIdentifier } from 'pg';
import { withClient } from '../../postgres/connections.ts';
import { commitFunctions } from './commit-functions.ts';
import { deliveryFunctions, deliveryTables } from './deliveries.ts';
import { removalFunctions } from './removal-functions.ts';
import { nodeTables, parkedIndex, tables } from './tables.ts';

/** Version of the tables and functions. Versions 1 to 3 were never released. Later ones are upgraded. */
export const schemaVersion = 9;

/** What upgrades the tables of a version to the next version. */
const upgrades: Readonly<Record<number, string>> = {
  4: 'ALTER TABLE runs ADD COLUMN rests_at text',
  5: `ALTER TABLE runs ADD COLUMN parked text; ${parkedIndex}`,
  6: nodeTables,
  7: 'ALTER TABLE runs ADD COLUMN readers text',
  // The function has other parameters since version 9.
  8: 'DROP FUNCTION IF EXISTS keep(text, bigint, json, text[])',
};

/** Drops the queue that versions up to 6 had in a schema of its own. All of its runs are in `runs` as well. */
function dropQueue(schema: string): string {
  // PostgreSQL truncates names to 63 characters, so longer ones ended in a hash.
  const hash = createHash('sha256').update(schema).digest('hex').slice(0, 8);
  const name = schema.length > 57 ? `${schema.slice(0, 48)}_${hash}_queue` : `${schema}_queue`;
  const drop = `DROP SCHEMA IF EXISTS ${escapeIdentifier(name)} CASCADE`;
  return `DO $$ BEGIN ${drop}; EXCEPTION WHEN insufficient_privilege THEN NULL; END $$`;
}

/**
 * Creates the schema with its tables and functions where it does not exist, in one transaction. Several processes may
 * call it at once: one creates the schema, the others wait and find it complete.
 * @throws Error for a schema of another version of Rivulet, and for a database that is not in UTF-8
 */
export async function createSchema(config: ClientConfig, schema: string): Promise<void> {
  // A connection without the time-outs of the store's.
  await withClient(config, async (client) => {
    const { rows: encodings } = await client.query<{ server_encoding: string }>('SHOW server_encoding');
    const encoding = encodings[0]?.server_encoding;
    // Another encoding would refuse some characters, and with them whole commits.
    if (encoding !== 'UTF8') throw new Error(`its database has the encoding ${encoding}; it has to be UTF8`);
    await client.query('BEGIN');
    await client.query('SELECT pg_advisory_xact_lock(hashtext($1), hashtext($2))', ['rivulet', schema]);
    const name = escapeIdentifier(schema);
    const { rows } = await client.query<{ schema: string | null; version: string | null }>(
      'SELECT to_regnamespace($1) AS schema, to_regclass($2) AS version',
      [name, `${name}.version`],
    );
    // `IF NOT EXISTS` would need the permission to create even where there is nothing to create.
    if (rows[0]?.schema == null) await client.query(`CREATE SCHEMA ${name}`);
    await client.query(`SET LOCAL search_path TO ${name}`);
    if (rows[0]?.version == null) await client.query('CREATE TABLE version (version integer NOT NULL)');
    await createTables(client, schema);
    await client.query('COMMIT');
  });
}

async function createTables(client: Client, schema: string): Promise<void> {
  const { rows } = await client.query<{ version: number }>('SELECT version FROM version');
  const found = rows[0]?.version;
  if (found === schemaVersion) return;
  if (found !== undefined && found in upgrades) {
    await client.query(dropQueue(schema));
    for (let version = found; version < schemaVersion; version += 1) await client.query(upgrades[version] ?? '');
    await client.query(commitFunctions);
    await client.query('UPDATE version SET version = $1', [schemaVersion]);
    return;
  }
  if (found !== undefined && found < schemaVersion) {
    throw new Error(
      `the schema ${schema} was written before Rivulet's first release (version ${found}); use another schema`,
    );
  }
  if (found !== undefined) {
    throw new Error(
      `the schema ${schema} was written by a newer Rivulet (version ${found}, this one knows ${schemaVersion})`,
    );
  }
  for (const part of [tables, nodeTables, deliveryTables, deliveryFunctions, commitFunctions, removalFunctions])
    await client.query(part);
  await client.query('INSERT INTO version VALUES ($1)', [schemaVersion]);
}
