/**
 * Attacks a server in each of the ways of `attacks/attacks.ts`, while others use it: `npm run test:attacks`, Linux with
 * two idle cores, some four minutes; `-- flood` for one attack. It exits with 1 unless all requests of the others are
 * answered, and their p99 stays below twice its quiet value and 5 ms; beside deep bodies, below six times. A text of
 * 20 MB holds the event loop at each step of its answer: beside such, it stays below a second, and the memory below 3 GB.
 */
import { attackRound, describeReport, type Round } from './attacks/attack-round.ts';
import { type AttackName, attacks } from './attacks/attacks.ts';

/** So short that the server closes slow connections while it is measured. */
const short = { headersTimeout: 6_000, receiveTimeout: 8_000, keepAliveTimeout: 6_000 };
const slow: readonly AttackName[] = ['slow headers', 'slow bodies', 'line feeds'];
/** Those that make the server hold large texts. */
const large: readonly AttackName[] = ['unread runs', 'large chats', 'endless cards'];
const slack = 5;
/** A step of an answer of 20 MB takes some 50 ms, and a run of the others waits for several. */
const largeSlack = 1_000;
/**
 * Times of the quiet p99. A body that is refused is read to its end, so that its client sees the answer. 45 MB a second
 * of them cause four full collections a second, of some 10 ms each.
 */
const allowed = (name: AttackName): number => (name === 'deep bodies' ? 6 : 2);

const isAttack = (text: string): text is AttackName => text in attacks;
const chosen = process.argv.slice(2).filter(isAttack);
const names = chosen.length > 0 ? chosen : Object.keys(attacks).filter(isAttack);
for (const name of names) {
  const { connections } = attacks[name];
  const round: Round = {
    name,
    connections,
    requests: 1_000,
    pinned: true,
    ...(slow.includes(name) && { limits: short }),
    ...(name === 'refused bodies' && { limits: { requestsPerMinute: 100 } }),
    // As `rivulet serve` has it; the heap is Node's default. The memory has the store, with all runs, as well.
    ...(large.includes(name) && { limits: { overloadHeap: 90 }, memory: name === 'large chats' ? 3_000 : 1_200 }),
  };
  const report = await attackRound(round);
  const { quiet, attacked } = report;
  const isSmall = report.memory[1] < (round.memory ?? Number.POSITIVE_INFINITY);
  const kept =
    isSmall &&
    attacked.failed === 0 &&
    attacked.p99 < allowed(name) * quiet.p99 + (large.includes(name) ? largeSlack : slack);
  console.log(`${kept ? 'kept  ' : 'BROKEN'} ${describeReport(round, report)}`);
  if (!kept) process.exitCode = 1;
}
