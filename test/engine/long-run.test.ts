import { describe, expect, it } from 'vitest';
import type { Run } from '../../src/index.ts';
import { tokens } from '../support/agents.ts';
import { ask, eventsOf, serveApi, textOf } from '../support/serve.ts';

describe('a run of 20,000 tokens', () => {
  it.each(['memory:', 'sqlite::memory:'])(
    'answers one part of text in sync mode, and keeps every token, on %s',
    async (store) => {
      const served = await serveApi([tokens], { store });
      const run: Run = await (await served.post('/runs', ask('tokens', '20000'))).json();
      expect(run.output).toHaveLength(1);
      expect(run.output[0]?.parts).toHaveLength(1);
      expect(textOf(run)).toMatch(/^t0 t1 .* t19999 $/);
      const parts = (await eventsOf(served, run.run_id)).flatMap((event) =>
        event.type === 'message.part' ? [event.part] : [],
      );
      expect(parts.map(({ content }) => content).join('')).toBe(textOf(run));
      expect(parts).toHaveLength(20_000);
    },
  );
});
