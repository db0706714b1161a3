/** How many there were in each stretch of time. When there are too many stretches, two become one: its size is bounded. */
export class Histogram {
  readonly #most: number;
  /** Milliseconds of one bar. */
  width: number;
  bars: number[] = [];

  constructor(width = 50, most = 60) {
    this.width = width;
    this.#most = most;
  }

  /** `at` is in milliseconds from the beginning, and never less than before. */
  add(at: number): void {
    while (at >= this.width * this.#most) this.#merge();
    const bar = Math.floor(at / this.width);
    while (this.bars.length <= bar) this.bars.push(0);
    this.bars[bar] = (this.bars[bar] ?? 0) + 1;
  }

  /** In a second, at its best. */
  get peak(): number {
    return (Math.max(0, ...this.bars) * 1_000) / this.width;
  }

  #merge(): void {
    this.width *= 2;
    this.bars = this.bars.flatMap((one, at) => (at % 2 === 0 ? [one + (this.bars[at + 1] ?? 0)] : []));
  }
}
