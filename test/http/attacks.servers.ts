import { expect, it } from 'vitest';
import { attackRound, describeReport, type Report, type Round } from '../long/attacks/attack-round.ts';

/** The server closes slow connections while it is measured. */
const limits = { headersTimeout: 1_000, receiveTimeout: 1_000, keepAliveTimeout: 1_000 };
const requests = 150;

/** Four of the seven attacks of `npm run test:attacks`, and the answers that each may get besides those that it has to get. */
const attacks: [round: Round, besides: string[]][] = [
  [{ name: 'idle', connections: 1_000, requests }, []],
  // For longer: the server has to close connections meanwhile.
  [{ name: 'slow headers', connections: 100, requests: 2 * requests, answers: ['408'], limits }, []],
  [{ name: 'deep bodies', connections: 1, requests, answers: ['400'] }, ['429']],
  [{ name: 'flood', connections: 8, requests, answers: ['200', '429'] }, []],
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
    const [round, besides] = row;
    const expected = round.answers ?? [];
    let report = await attackRound(round);
    console.log(describeReport(round, report));
    // Other load that begins during an attack slows down the others as well; an attack that they notice does so each time.
    for (let attempt = 2; attempt <= 6 && !unnoticed(report); attempt += 1)
      report = await attackRound({ ...round, quietAfter: true });
    const { attacked, tally } = report;
    expect(attacked.failed).toBe(0);
    expect(
      Object.keys(tally.answers).filter((status) => !expected.includes(status) && !besides.includes(status)),
    ).toEqual([]);
    if (round.limits !== undefined) expect(tally.closed).toBeGreaterThan(0);
    expect(unnoticed(report), describeReport(round, report)).toBe(true);
  },
);
