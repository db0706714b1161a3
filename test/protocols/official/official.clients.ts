import { expect, it } from 'vitest';
import { serveChats } from './agent.ts';
import { clients } from './clients.ts';
import { rowOf, writeRow } from './page.ts';
import { cellsOf } from './seen.ts';

// The table of docs/clients.md: `npm run docs:clients` writes what these tests see, which otherwise compare it.

it.each(clients)('%s shows what the page says', async (name, see) => {
  const cells = cellsOf(await see(serveChats));
  if (process.env.WRITE_DOCS !== undefined) writeRow(name, cells);
  expect(rowOf(name)).toEqual(cells);
});
