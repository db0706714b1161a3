import { EventEmitter, once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { Observable, type Subscriber } from 'rxjs';
import { expect, it } from 'vitest';
import type { Key, Outcome, Write } from '../../src/core/ports/run-store.ts';
import { createServer, defineAgent } from '../../src/index.ts';
import { MemoryStore } from '../../src/stores/memory/memory-store.ts';
import { apiOnly, ask } from '../support/serve.ts';

/** A store that responds when the test releases it, like a slow one behind a network. */
class SlowStore extends MemoryStore {
  readonly #events = new EventEmitter();
  readonly #held = new Set<string>();

  /** Resolves at the next call of the method, which then waits for its release. */
  async hold(what: 'commit' | 'key'): Promise<void> {
    this.#held.add(what);
    await once(this.#events, `asked ${what}`);
  }

  go(what: 'commit' | 'key'): void {
    this.#held.delete(what);
    this.#events.emit(`go ${what}`);
  }

  override async commit(writes: readonly Write[]): Promise<Outcome[]> {
    await this.#turn('commit');
    return super.commit(writes);
  }

  override async key(scope: string, key: string): Promise<Key | undefined> {
    await this.#turn('key');
    return super.key(scope, key);
  }

  async #turn(what: string): Promise<void> {
    if (!this.#held.has(what)) return;
    this.#events.emit(`asked ${what}`);
    await once(this.#events, `go ${what}`);
  }
}

it('releases a durable run that is added while the others are released', async () => {
  const told = new EventEmitter();
  const agent = defineAgent(
    { name: 'talk', description: 'Says what the test says.' },
    () => new Observable<string>((subscriber) => void told.emit('started', subscriber)),
    { durable: true },
  );
  const store = new SlowStore();
  const app = await createServer({
    agents: [agent],
    store,
    ...apiOnly,
    limits: { shutdownGrace: 60_000 },
  });
  const post = (headers = {}) =>
    app.inject({ method: 'POST', url: '/runs', payload: ask('talk', 'hi', { mode: 'async' }), headers });

  const started = once(told, 'started');
  await post();
  const subscriber: Subscriber<string> | undefined = (await started)[0];
  const commit = store.hold('commit');
  subscriber?.next('a');
  await commit;
  const key = store.hold('key');
  const late = post({ 'idempotency-key': 'k' });
  await key;
  const closed = app.close();
  for (let turns = 0; turns < 20; turns += 1) await setImmediate();
  store.go('key');
  await setImmediate();
  store.go('commit');

  const { run_id } = (await late).json();
  await closed;
  expect(await store.run(run_id)).toMatchObject({ status: 'created', finished_at: null });
});
