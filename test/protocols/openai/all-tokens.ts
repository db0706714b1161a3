import fc from 'fast-check';
import { expect } from 'vitest';
import { tokenIn } from '../../../src/core/recognize.ts';
import { logs } from '../../support/logs.ts';

/** For any log: the text that a protocol makes of it has each token, in their order. */
export function expectAllTokens(textIn: (log: readonly string[]) => string): void {
  fc.assert(
    fc.property(logs, (log) => {
      const tokens = log.flatMap((line) => tokenIn(line) ?? []).map((token): string => JSON.parse(token));
      const text = textIn(log);
      let at = 0;
      for (const token of tokens) {
        at = text.indexOf(token, at) + token.length;
        expect(at).toBeGreaterThanOrEqual(token.length);
      }
    }),
    { numRuns: 100 },
  );
}
