import { Client, type ClientConfig, escapeIdentifier } from 'pg';
import { clearFunctions } from './clear.ts';
import { takeFunctions } from './commit-function.ts';
import { tables } from './tables.ts';

/** Of the tables and functions. A later version adds a step that leads from the one before to it. */
const version = 1;

/**
 * Makes a schema with its tables and functions where there is none, in one transaction. Several processes may do so at
 * once: one works, the others wait and find it done.
 * @throws Error for a schema of a newer Rivulet, and a database that is not in UTF-8
 */
export async function makeSchema(config: ClientConfig, schema: string): Promise<void> {
  // A connection of its own, which may take its time.
  const client = new Client(config);
  await client.connect();
  try {
    const { rows: encodings } = await client.query<{ server_encoding: string }>('SHOW server_encoding');
    const encoding = encodings[0]?.server_encoding;
    // Any other would refuse a character some day, and with it all of a commit.
    if (encoding !== 'UTF8') throw new Error(`its database has the encoding ${encoding}; it has to be UTF8`);
    await client.query('BEGIN');
    await client.query('SELECT pg_advisory_xact_lock(hashtext($1), hashtext($2))', ['rivulet', schema]);
    const name = escapeIdentifier(schema);
    const { rows } = await client.query<{ schema: string | null; version: string | null }>(
      'SELECT to_regnamespace($1) AS schema, to_regclass($2) AS version',
      [name, `${name}.version`],
    );
    // Asked, because `IF NOT EXISTS` wants the right to make things even where there is nothing to make.
    if (rows[0]?.schema == null) await client.query(`CREATE SCHEMA ${name}`);
    await client.query(`SET LOCAL search_path TO ${name}`);
    if (rows[0]?.version == null) await client.query('CREATE TABLE version (version integer NOT NULL)');
    await fill(client, schema);
    await client.query('COMMIT');
  } finally {
    // Where the transaction was not committed, it ends with the connection.
    await client.end();
  }
}

async function fill(client: Client, schema: string): Promise<void> {
  const { rows } = await client.query<{ version: number }>('SELECT version FROM version');
  const found = rows[0]?.version;
  if (found === version) return;
  if (found !== undefined) {
    throw new Error(
      `the schema ${schema} was written by a newer Rivulet (version ${found}, this one knows ${version})`,
    );
  }
  for (const part of [tables, takeFunctions, clearFunctions]) await client.query(part);
  await client.query('INSERT INTO version VALUES ($1)', [version]);
}
