import fc from 'fast-check';
import { expect } from 'vitest';
import { runEventOf } from '../../src/core/recognize.ts';
import { type Position, type Projection, Projector } from '../../src/http/sse/projection.ts';
import type { Outline } from '../../src/protocols/turns.ts';
import { busyLogs } from '../support/logs.ts';

/** All frames of a log. */
export function framesOf<State>(projection: Projection<State>, log: readonly string[]): string[] {
  const projector = new Projector(projection);
  return log.flatMap((line, index) => projector.take(line, index + 1));
}

/** The outline of a log, as it is read from a run. */
export const outlineIn = (log: readonly string[]): Outline => ({
  changes: log.flatMap((line, index) => {
    const status = runEventOf(line);
    return status === undefined ? [] : [{ n: index + 1, status }];
  }),
  last: log.length,
});

/** The frames of a stream that is resumed at a position. */
export async function framesFrom<State>(
  projection: Projection<State>,
  log: readonly string[],
  position: Position,
): Promise<string[]> {
  const projector = new Projector(projection);
  const batches = (async function* () {
    // In two batches, as a store may have them.
    const half = Math.ceil(log.length / 2);
    yield { first: 1, lines: log.slice(0, half) };
    if (half < log.length) yield { first: half + 1, lines: log.slice(half) };
  })();
  const left = position.event === 0 ? [] : await projector.skipTo(position, batches);
  return [...left, ...log.slice(position.event).flatMap((line, i) => projector.take(line, position.event + i + 1))];
}

/** For any log and any place in its frames: what a client has, and the rest from there on, are the whole stream. */
export async function expectExactRest<State>(projection: Projection<State>): Promise<void> {
  await fc.assert(
    fc.asyncProperty(busyLogs, fc.nat(), async (log, anywhere) => {
      const projector = new Projector(projection);
      const places: { position: Position; before: number }[] = [{ position: { event: 0, frames: 0 }, before: 0 }];
      let before = 0;
      for (const [index, line] of log.entries()) {
        const own = projector.take(line, index + 1);
        for (let frames = 0; frames <= own.length; frames += 1) {
          places.push({ position: { event: index + 1, frames }, before: before + frames });
        }
        before += own.length;
      }
      const all = framesOf(projection, log);
      const place = places[anywhere % places.length];
      if (place === undefined) return;
      expect(await framesFrom(projection, log, place.position)).toEqual(all.slice(place.before));
    }),
    { numRuns: 300 },
  );
}
