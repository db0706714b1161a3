/**
 * Prints how many bytes a run that is final leaves for a full collection. A process of its own: other tests change its
 * heap. It runs the built server, in JavaScript: tsx names each function by `defineProperty`, and on a machine with other
 * load V8 then often keeps what these functions reach, 8 KB a run, until a full collection. Seen in 5 of 10 processes;
 * in none of 12 without the names.
 */
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { of } from 'rxjs';
import { defineAgent } from '../../dist/core/agent.js';
import { Registry } from '../../dist/engine/agents/registry.js';
import { Engine } from '../../dist/engine/engine.js';
import { MemoryStore } from '../../dist/stores/memory/memory-store.js';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');
const used = () => getHeapStatistics().used_heap_size;

const greet = defineAgent({ name: 'greet', description: 'Says hello.' }, () => of('hello'));
const silent = { debug() {}, info() {}, warn() {}, error() {} };

async function startEngine() {
  const engine = new Engine({
    registry: new Registry([{ agent: greet, source: 'the test' }]),
    store: new MemoryStore(),
    fetchResource: () => Promise.reject(new Error('nothing is fetched here')),
    publicUrl: () => 'http://localhost',
    logFor: () => silent,
    onFailure: (error) => {
      throw error;
    },
  });
  await engine.start();
  return engine;
}

async function run(engine) {
  const { run_id, after } = await engine.create({ agent_name: 'greet', input: [{ parts: [{ content: 'hi' }] }] });
  for await (const _ of await engine.openCursor(run_id, { after, until: 'settled' }));
}

/** So many at a time: a Map in which they come and go has to grow and shrink. */
const atOnce = 32;

async function runs(engine, count) {
  for (let n = 0; n < count; n += atOnce) await Promise.all(Array.from({ length: atOnce }, () => run(engine)));
}

/** Bytes that each of so many runs leaves for a full collection. */
async function leftOf(engine, count) {
  collect();
  await runs(engine, count);
  for (let times = 0; times < 2; times += 1) collect({ type: 'minor' });
  const before = used();
  collect();
  return (before - used()) / count;
}

const engine = await startEngine();
await runs(engine, 1_600);
await run(engine);
console.log(await leftOf(engine, 1_600));
await engine.stop();
