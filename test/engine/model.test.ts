// model.servers.ts does more.
import { describe, it } from 'vitest';
import { expectModel } from './run-model.ts';

describe.each(['memory:', 'sqlite::memory:'])('a run of any agent, with any requests, on %s', (store) => {
  it('ends with one final event, by valid transitions, with the same log for every reader', () =>
    expectModel(store, 20));
});
