import type { Clock } from './clock.ts';

/** A violation of an invariant. */
export interface Violation {
  /** The name of the invariant. */
  readonly invariant: string;
  readonly detail: string;
  /** Virtual milliseconds since the beginning. */
  readonly at: number;
}

/** How many events of each actor are kept for a report. */
const kept = 40;

/** The last events of every actor, and the first violation. */
export class Ledger {
  readonly #clock: Clock;
  readonly #last = new Map<string, string[]>();
  readonly #names = new Map<string, string>();
  #count = 0;
  violation: Violation | undefined;

  readonly #trace: ((line: string) => void) | undefined;

  /** `trace` receives every event when it happens. */
  constructor(clock: Clock, trace?: (line: string) => void) {
    this.#clock = clock;
    this.#trace = trace;
  }

  /** The number of recorded events: the same for the same seed. */
  get count(): number {
    return this.#count;
  }

  record(actor: string, text: string): void {
    this.#count += 1;
    const lines = this.#last.get(actor) ?? [];
    this.#last.set(actor, lines);
    const time = `${(this.#clock.now / 1000).toFixed(3).padStart(8)} s`;
    lines.push(`${time}  ${text}`);
    this.#trace?.(this.#named(`${time}  ${actor}: ${text}`));
    if (lines.length > kept) lines.shift();
  }

  /** Only the first violation is kept: later ones may follow from it. */
  violate(invariant: string, detail: string): void {
    if (this.violation !== undefined) return;
    this.violation = { invariant, detail: this.#named(detail), at: this.#clock.now };
    this.record('invariants', `${invariant}: ${detail}`);
  }

  /** Reports call a long id by this name. */
  name(id: string, name: string): void {
    this.#names.set(id, name);
  }

  nameOf(id: string): string {
    return this.#names.get(id) ?? id;
  }

  /** The last events of each actor, as lines. */
  lines(): string[] {
    return [...this.#last].flatMap(([actor, lines]) => [
      `${this.#named(actor)}:`,
      ...lines.map((line) => `  ${this.#named(line)}`),
    ]);
  }

  #named(text: string): string {
    return text.replaceAll(/[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g, (id) => this.nameOf(id));
  }
}
