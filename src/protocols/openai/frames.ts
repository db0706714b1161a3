import { sequenceNumber } from './ids.ts';

/** The frames of one event. */
export class Frames {
  readonly #n: number;
  readonly #frames: string[];
  readonly #first: number;

  constructor(n: number, frames: string[]) {
    this.#n = n;
    this.#frames = frames;
    this.#first = frames.length;
  }

  /** An event; `fields` is the JSON of its fields. */
  add(type: string, fields: string): void {
    this.#frames.push(`event: ${type}\ndata: {"type":"${type}",${fields},"sequence_number":${this.next}}\n\n`);
  }

  text(text: string): void {
    this.#frames.push(text);
  }

  /** The number of the next frame. */
  get next(): number {
    return sequenceNumber(this.#n, this.#frames.length - this.#first);
  }
}
