/** The agents of Rivulet's contestants. */
import { concat, from, interval, map, Observable, of, take } from 'rxjs';
import { defineAgent } from '../../dist/index.js';
import { emit, readAsked } from './tokens.ts';

const ticks = (first: number): Observable<string> => interval(5).pipe(map((n) => `tick ${first + n} `));

export const agents = [
  defineAgent({ name: 'tokens', description: 'Emits tokens.' }, (input) => {
    const asked = readAsked(input[0]?.parts[0]?.content ?? '');
    return new Observable<string>((subscriber) => {
      emit(
        asked,
        (content) => subscriber.next(content),
        () => subscriber.complete(),
      );
    });
  }),
  defineAgent({ name: 'echo', description: 'Echoes.' }, (input) => from(input)),
  // Each process emits its id when it takes the run over.
  defineAgent(
    { name: 'steady', description: 'Ticks for a minute, on any node.' },
    (_input, context) =>
      concat(
        context.step('begin', () => of(`in ${process.pid} `)),
        context.step(
          'ticks',
          () => ticks(0).pipe(take(12_000)),
          (before) => concat(of(`in ${process.pid} `), ticks(before.length).pipe(take(12_000))),
        ),
      ),
    { durable: true },
  ),
];
