import { describe, expect, it } from 'vitest';
import { Faults } from '../soak/measurements.ts';
import type { NodeLine, RunLine } from './effect-ledger.ts';
import type { Placed } from './history.ts';
import { checkInvariants } from './invariants.ts';

const times = { lease: 1_000, cancelGrace: 2_000, shutdownGrace: 3_000 };

/** A ledger, written as `TIME NODE WHAT` of a process, with a time for a stall, and `TIME NODE RUN LIFE WHAT …` of a run. */
function ledgerOf(text: string) {
  const lines = text
    .trim()
    .split('\n')
    .map((line) => line.trim().split(' '));
  const runLines = lines.flatMap(([at, node = '', run = '', life = '', what = '', step, ms, ...used]) => {
    if (what === '') return [];
    const values = Object.fromEntries(used.map((one) => one.split('=')));
    return [{ at: Number(at), node, run, life, what, ...(step && { step, ms: Number(ms), values }) } as RunLine];
  });
  const nodeLines = lines.flatMap(([at, node = '', what, from, more]) =>
    more === undefined ? [{ at: Number(at), node, what, ...(from && { from: Number(from) }) } as NodeLine] : [],
  );
  return {
    of: (run: string) => runLines.filter((line) => line.run === run),
    ofNode: (node: string) => nodeLines.filter((line) => line.node === node),
  };
}

const checkout = (more: Partial<Placed> = {}): Placed => ({
  order: { key: 'k', kind: 'checkout' },
  run_id: 'r',
  session_id: 's',
  status: 'in-progress',
  replies: [],
  stuck: [],
  ...more,
});
const approve = (more: Partial<Placed> = {}): Placed => checkout({ order: { key: 'k', kind: 'approve' }, ...more });
const reply = (text: string, sentAt: number) => ({ text, sentAt, outcome: 'accepted' }) as const;
const cancelled = { status: 'cancelled', cancel: { sentAt: 200, outcome: 'accepted' } } as const;

/** The kinds of what is broken. */
function broken(text: string, ...placed: Placed[]): string[] {
  const faults = new Faults();
  checkInvariants(ledgerOf(text), placed, { ...times, seed: 1 }, faults);
  return Object.keys(faults.counts);
}

type Case = [what: string, placed: Placed[], ledger: string];

describe('the check of the effects finds', () => {
  it.each<Case>([
    [
      'I1: a repeated effect uses other values',
      [checkout()],
      '0 n0 r a enter\n0 n0 r a begin lock 9 key=1\n5 n0 kill\n9 n1 r b enter\n9 n1 r b begin lock 9 key=2',
    ],
    [
      'I2: a run that goes on was undone',
      [checkout()],
      '0 n0 r a enter\n0 n0 r a begin pay 9\n5 n0 r a undo refund\n6 n0 kill\n9 n1 r b enter\n10 n1 r b begin pay 9',
    ],
    ['I2: a run that goes on was undone', [checkout({ status: 'completed' })], '0 n0 r a enter\n5 n0 r a undo refund'],
    [
      'I2: a step began after another node took the run over',
      [checkout()],
      '0 n0 r a enter\n5 n1 r b enter\n9 n0 r a begin pay 9',
    ],
    [
      'I2: a step began after another node took the run over',
      [checkout()],
      `0 n0 r a enter\n1 n0 r a begin book 9\n2000 n0 stall 2\n1500 n1 r b enter\n2001 n0 r a end book
       2002 n0 r a begin pay 9`,
    ],
    [
      'I3: two lives of a run are inside the same step',
      [checkout()],
      '0 n0 r a enter\n0 n0 r a begin pay 99\n5 n1 r b enter\n9 n1 r b begin pay 99\n99 n0 r a end pay',
    ],
    [
      'I4: a reply repeated a running step',
      [approve({ replies: [reply('x', 50)] })],
      '0 n0 r a enter\n0 n0 r a begin remind 99\n60 n1 r b enter\n99 n0 r a end remind\n200 n1 r b begin remind 99',
    ],
    [
      'I5: the agent did not use the accepted reply',
      [approve({ replies: [reply('x', 0)] })],
      '0 n0 r a enter\n1 n0 r a begin ship 9 reply=y',
    ],
    [
      'I5: the agent did not use the accepted reply',
      [approve({ replies: [reply('x', 0), reply('y', 0)] })],
      '0 n0 r a enter',
    ],
    ['I5: a run did not go on after its accepted reply', [approve({ stuck: ['reply'] })], '0 n0 r a enter'],
    [
      'I5: a run is not cancelled after its accepted cancel',
      [checkout({ ...cancelled, status: 'failed', error: '' })],
      '0 n0 r a enter',
    ],
    [
      'I5: a run began while the agent of the run before it worked',
      [checkout(cancelled), checkout({ run_id: 'q' })],
      '0 n0 r a enter\n100 n0 r a begin pay 900\n300 n1 q b enter\n300 n1 q b begin lock 9\n1000 n0 r a end pay',
    ],
    ['I6: a step waits for a reply that it does not need', [approve({ stuck: ['unasked'] })], '0 n0 r a enter'],
    ['I7: a step began after SIGTERM', [checkout()], '0 n0 r a enter\n1 n0 term\n1100 n0 r a begin pay 9'],
    [
      'I7: a running step was cut off by SIGTERM',
      [checkout()],
      '0 n0 r a enter\n0 n0 r a begin pay 900\n50 n0 term\n60 n0 exit',
    ],
    [
      'I7: a step that ended after SIGTERM was done again',
      [checkout()],
      `0 n0 r a enter\n0 n0 r a begin pay 90\n50 n0 term\n90 n0 r a end pay\n95 n0 exit\n99 n1 r b enter
       99 n1 r b begin pay 90`,
    ],
    ['a run did not end', [checkout({ stuck: ['end'] })], '0 n0 r a enter'],
    ['a run failed', [checkout({ status: 'failed', error: 'replay_diverged' })], '0 n0 r a enter'],
    ['a completed run lacks an effect', [checkout({ status: 'completed' })], '0 n0 r a enter'],
  ])('%s', (what, placed, ledger) => {
    expect(broken(ledger, ...placed)).toContain(what);
  });
});

const all = ['lock', 'book', 'pay', 'mail'].map((step) => `9 n0 r a begin ${step} 1\n10 n0 r a end ${step}`).join('\n');

describe('the check of the effects permits', () => {
  it.each<Case>([
    [
      'a step that is done again after its node was killed in it',
      [checkout()],
      '0 n0 r a enter\n0 n0 r a begin pay 99 key=1\n5 n0 kill\n9 n1 r b enter\n9 n1 r b begin pay 99 key=1',
    ],
    [
      'a step of a node that was stalled for longer than its lease, beside its repetition',
      [checkout()],
      `0 n0 r a enter\n0 n0 r a begin pay 99\n5 n0 pause\n1500 n1 r b enter\n1500 n1 r b begin pay 99\n2000 n0 stall 5
       2001 n0 r a end pay`,
    ],
    [
      'a step that a node was about to begin when it was stalled',
      [checkout()],
      '0 n0 r a enter\n2000 n0 stall 5\n1500 n1 r b enter\n2001 n0 r a begin second 9',
    ],
    [
      'a step that a stalled node was about to begin, beside the same step of another node that a reply reached',
      [approve({ replies: [reply('x', 1600)] })],
      `0 n0 r a enter\n5 n0 pause\n1500 n1 r b enter\n1500 n1 r b begin remind 300\n1800 n1 r b end remind
       2000 n0 stall 5\n2001 n0 r a begin remind 99`,
    ],
    [
      'a step that another node does again when the grace of its node is over',
      [checkout()],
      '0 n0 r a enter\n0 n0 r a begin pay 9000\n5 n0 term\n3005 n1 r b enter\n3005 n1 r b begin pay 9000\n3100 n0 exit',
    ],
    [
      'an agent that undoes a run that is cancelled',
      [checkout(cancelled)],
      '0 n0 r a enter\n0 n0 r a begin pay 999\n201 n0 r a undo refund\n202 n0 r a undo unlock\n999 n0 r a end pay',
    ],
    [
      'an agent that tidies up at its end, and again after a crash',
      [checkout({ status: 'completed' })],
      `0 n0 r a enter\n${all}\n11 n0 r a undo unlock\n12 n0 kill\n13 n1 r b enter\n14 n1 r b undo unlock`,
    ],
    [
      'an agent that tidies up as its node stalls, before the end of its last step is durable',
      [checkout({ status: 'completed' })],
      `0 n0 r a enter\n${all}\n11 n0 pause\n12 n0 r a undo unlock\n1600 n1 r b enter\n1600 n1 r b begin mail 1
       1601 n1 r b end mail\n1602 n1 r b undo unlock`,
    ],
    [
      'the next run of a session when the grace of a cancelled one is over',
      [checkout(cancelled), checkout({ run_id: 'q' })],
      '0 n0 r a enter\n100 n0 r a begin pay 9000\n2300 n1 q b enter\n2300 n1 q b begin lock 9\n9100 n0 r a end pay',
    ],
    [
      'a reply that is sent before a step that a killed node has begun',
      [approve({ replies: [reply('x', 50)] })],
      '0 n0 r a enter\n0 n0 r a begin remind 99\n60 n0 kill\n200 n1 r b enter\n200 n1 r b begin remind 99',
    ],
    [
      'a step that ends after SIGTERM, and is not done again',
      [checkout()],
      '0 n0 r a enter\n0 n0 r a begin pay 90\n50 n0 term\n90 n0 r a end pay\n95 n0 exit\n99 n1 r b enter',
    ],
  ])('%s', (_, placed, ledger) => {
    expect(broken(ledger, ...placed)).toEqual([]);
  });
});
