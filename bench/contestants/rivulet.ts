/** Rivulet, with the store that its argument names. */
import { from, Observable } from 'rxjs';
import { createServer, defineAgent } from '../../dist/index.js';
import { emit, readAsked, report } from './tokens.ts';

const agents = [
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
];
const app = await createServer({ agents, store: process.argv[2] ?? 'memory:', docs: false });
await app.listen({ port: 0, host: '127.0.0.1' });
report(Number(new URL(app.listeningOrigin).port));
