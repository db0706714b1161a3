import { setTimeout as delay, setImmediate as immediate } from 'node:timers/promises';

/** How long each plain wait of an agent takes: in each life another time, so that in a later life other branches are faster. */
export class Speeds {
  readonly #seed: number;
  #life = 0;

  constructor(seed: number) {
    this.#seed = seed;
  }

  beginLife(): void {
    this.#life += 1;
  }

  /** Up to three turns of the event loop, or milliseconds. */
  async pause(place: string): Promise<void> {
    const number = hashOf(`${this.#seed} ${this.#life} ${place}`);
    const length = 1 + (number % 3);
    if (number % 4 === 0) await delay(length);
    else for (let turns = 0; turns < length; turns += 1) await immediate();
  }
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  return (hash ^ (hash >>> 15)) >>> 0;
}
