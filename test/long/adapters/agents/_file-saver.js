import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { deserialize, serialize } from 'node:v8';
import { MemorySaver } from '@langchain/langgraph';

/** Keeps each thread in a file, so that the checkpoints survive the process. Only one process at a time has a thread. */
export class FileSaver extends MemorySaver {
  async getTuple(config) {
    this.#load(config);
    return super.getTuple(config);
  }

  async *list(config, options) {
    this.#load(config);
    yield* super.list(config, options);
  }

  async put(config, ...more) {
    this.#load(config);
    const put = await super.put(config, ...more);
    this.#save(config);
    return put;
  }

  async putWrites(config, ...more) {
    this.#load(config);
    await super.putWrites(config, ...more);
    this.#save(config);
  }

  #load({ configurable: { thread_id: thread } }) {
    if (!existsSync(fileOf(thread))) return;
    const { storage, writes } = deserialize(readFileSync(fileOf(thread)));
    this.storage[thread] = storage;
    Object.assign(this.writes, writes);
  }

  #save({ configurable: { thread_id: thread } }) {
    const writes = Object.entries(this.writes).filter(([key]) => JSON.parse(key)[0] === thread);
    const file = fileOf(thread);
    const part = `${file}.${process.pid}`;
    writeFileSync(part, serialize({ storage: this.storage[thread], writes: Object.fromEntries(writes) }));
    renameSync(part, file);
  }
}

const fileOf = (thread) => `thread ${thread}`;
