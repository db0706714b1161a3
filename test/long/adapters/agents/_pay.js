import { appendFileSync, existsSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

const { OPENAI_BASE_URL: baseURL, PAY_TIME = '0' } = process.env;

/** The model of all agents. */
export const access = { baseURL, apiKey: 'none' };
export const model = 'strict';

export const description = 'Pays an amount.';

/** Pays: writes to the ledger before and after, and does not end while there is a file that holds it. */
export async function pay({ amount }) {
  const write = (what) => appendFileSync('ledger', `${what} ${amount} ${process.pid}\n`);
  write('begin');
  await setTimeout(Number(PAY_TIME));
  while (existsSync(`hold ${amount}`)) await setTimeout(5);
  write('end');
  return { paid: amount };
}
