import { createHash } from 'node:crypto';
import type { Clock } from './clock.ts';

/** A violation of an invariant. */
export interface Violation {
  /** The name of the invariant. */
  readonly invariant: string;
  readonly detail: string;
  /** Virtual milliseconds since the beginning. */
  readonly at: number;
}

const anyId = /[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g;
const anyDay = /\b\d{4}-\d\d-\d\dT/g;

/** How many events of each actor are kept for a report. */
const kept = 40;

/** The last events of every actor, and the first violation. */
export class Ledger {
  readonly #clock: Clock;
  readonly #last = new Map<string, string[]>();
  readonly #names = new Map<string, string>();
  readonly #hash = createHash('sha256');
  /** The ids that were recorded, in the order of their first appearance. */
  readonly #ids = new Map<string, number>();
  violation: Violation | undefined;

  readonly #trace: ((line: string) => void) | undefined;

  /** `trace` receives every event when it happens. */
  constructor(clock: Clock, trace?: (line: string) => void) {
    this.#clock = clock;
    this.#trace = trace;
  }

  /**
   * The hash of all recorded events, and so of the violation: the same for the same seed. Each simulation of a process has
   * later days and ids than the one before, so a date counts without its day, and an id as its number.
   */
  get hash(): string {
    return this.#hash.copy().digest('hex');
  }

  record(actor: string, text: string): void {
    const lines = this.#last.get(actor) ?? [];
    this.#last.set(actor, lines);
    const time = `${(this.#clock.now / 1000).toFixed(3).padStart(8)} s`;
    lines.push(`${time}  ${text}`);
    this.#hash.update(this.#withoutCalendar(`${this.#clock.now} ${actor}: ${text}\n`));
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
    return text.replaceAll(anyId, (id) => this.nameOf(id));
  }

  #withoutCalendar(text: string): string {
    return text.replaceAll(anyId, (id) => this.#numberOf(id)).replaceAll(anyDay, 'T');
  }

  #numberOf(id: string): string {
    const number = this.#ids.get(id) ?? this.#ids.size;
    this.#ids.set(id, number);
    return `#${number}`;
  }
}
