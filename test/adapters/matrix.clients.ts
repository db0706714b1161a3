import { afterAll, describe, expect, it } from 'vitest';
import { Matrix } from '../long/adapters/matrix.ts';
import type { Reply } from '../long/adapters/paid-chat.ts';
import { type Phase, phases } from '../long/adapters/phases.ts';

const matrix = await Matrix.open();
afterAll(() => matrix.close());

/** Each phase once; `npm run test:adapters` has each with every reply. */
const rows = phases.map((phase, index): [Phase, Reply] => {
  if (phase === 'while the tool runs') return [phase, 'approve'];
  return [phase, index % 2 === 0 ? 'deny' : 'approve'];
});

describe('the agents of each adapter', () => {
  it.each(rows)('end a chat whose process is killed %s, with the reply %s', async (phase, reply) => {
    const cells = await matrix.play(phase, reply);
    expect(cells.flatMap(({ faults }) => faults)).toEqual([]);
    for (const { told } of cells)
      expect(told).toMatch(/^user: Pay \d+ \| .*tool: .* user: Pay \d+ \| .*tool: .* user: Hello \d+$/);
  });
});
