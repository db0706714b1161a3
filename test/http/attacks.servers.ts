import { expect, it } from 'vitest';
import { attackRound, describeReport, type Report, type Round } from '../long/attacks/attack-round.ts';

/** The server closes slow connections while it is measured. */
const limits = { headersTimeout: 1_000, receiveTimeout: 1_000, keepAliveTimeout: 1_000 };
const requests = 150;

/** Four of the seven attacks of `npm run test:attacks`. The answers that an attack has to get, and those that it may get besides. */
const attacks: [round: Round, expected: string[], besides: string[]][] = [
  [{ name: 'idle', connections: 1_000, requests }, [], []],
  // For longer: the server has to close connections meanwhile.
  [{ name: 'slow headers', connections: 100, requests: 2 * requests, limits }, ['408'], []],
  [{ name: 'deep bodies', connections: 1, requests }, ['400'], ['429']],
  [{ name: 'flood', connections: 8, requests }, ['200', '429'], []],
];

/**
 * Whether the others noticed nothing. Their p99 is printed; `npm run test:attacks` demands it of an idle machine. Here
 * other tests run at the same time, so the median is compared.
 */
const unnoticed = ({ quiet, attacked }: Report): boolean => attacked.median < 2 * quiet.median + 20;

it.each(attacks)(
  'others do not notice an attack: $name, $connections connections',
  { timeout: 900_000 },
  async (...row) => {
    const [round, expected, besides] = row;
    let report = await attackRound(round);
    console.log(describeReport(round, report));
    // Other load that begins during an attack slows down the others as well; an attack that they notice does so each time.
    for (let attempt = 2; attempt <= 6 && !unnoticed(report); attempt += 1)
      report = await attackRound({ ...round, quietAfter: true });
    const { attacked, tally } = report;
    const answers = Object.keys(tally.answers);
    expect(attacked.failed).toBe(0);
    expect(answers).toEqual(expect.arrayContaining(expected));
    expect(answers.filter((status) => !expected.includes(status) && !besides.includes(status))).toEqual([]);
    if (round.limits !== undefined) expect(tally.closed).toBeGreaterThan(0);
    expect(unnoticed(report), describeReport(round, report)).toBe(true);
  },
);
