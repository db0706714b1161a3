import type { RunClaims } from '../../core/ports/run-claims.ts';
import type { Partitions } from '../../core/ports/store.ts';
import { answered, byPart, each, inTurn } from './parts.ts';

/** A part with which a node could not renew its lease gives it no runs of others for this share of a lease afterwards. */
const caution = 1 / 3;

/** What a node knows of its lease in one part, in milliseconds of `performance.now`. */
interface Lease {
  readonly endsAt: number;
  /** When it may claim there. */
  readonly claimsFrom: number;
  /** Whether the part has not answered the last renewal. */
  readonly isAway: boolean;
}

const noLease: Lease = { endsAt: 0, claimsFrom: 0, isAway: false };

/**
 * Which node has each run, where each part of the store has leases of its own. A node lives as long as some part renews its
 * lease. It claims no runs in a part that does not answer, nor at once when that part answers again: the leases of the other
 * nodes, which live, may have ended there, also while this node was starting.
 */
export class ClusterClaims implements RunClaims {
  readonly #parts: readonly RunClaims[];
  readonly #partitions: Partitions;
  /** Of each node of this process, by part. */
  readonly #leases = new Map<string, Lease[]>();
  /** The part that is asked first, in turn. */
  #first = 0;

  constructor(parts: readonly RunClaims[], partitions: Partitions) {
    this.#parts = parts;
    this.#partitions = partitions;
  }

  async renewLease(node: string, milliseconds: number): Promise<void> {
    const began = performance.now();
    const leases = this.#leases.get(node) ?? this.#parts.map(() => noLease);
    this.#leases.set(node, leases);
    const late = new Set(this.#parts.keys());
    const renewed = this.#parts.map(async (part, index) => {
      await part.renewLease(node, milliseconds);
      late.delete(index);
      const { endsAt, claimsFrom, isAway } = leases[index] ?? noLease;
      const now = performance.now();
      const hadEnded = (endsAt > 0 || isAway) && endsAt < now;
      leases[index] = {
        endsAt: began + milliseconds,
        claimsFrom: hadEnded ? now + caution * milliseconds : claimsFrom,
        isAway: false,
      };
    });
    try {
      await answered(renewed);
    } finally {
      for (const index of late) leases[index] = { ...(leases[index] ?? noLease), isAway: true };
    }
  }

  async endLease(node: string): Promise<void> {
    this.#leases.delete(node);
    await each(this.#parts, (part) => part.endLease(node));
  }

  async claimRuns(node: string, agents: readonly string[], limit: number): Promise<string[]> {
    this.#first = (this.#first + 1) % this.#parts.length;
    const indexes = this.#parts.map((_, index) => index);
    return inTurn(indexes, this.#first, limit, async (index, rest) => {
      const { endsAt, claimsFrom, isAway } = this.#leases.get(node)?.[index] ?? noLease;
      const now = performance.now();
      return isAway || endsAt < now || claimsFrom > now ? [] : this.#part(index).claimRuns(node, agents, rest);
    });
  }

  async takeRuns(node: string, run_ids: readonly string[]): Promise<string[]> {
    const groups = byPart(run_ids, (id) => this.#partitions.of(id));
    return (await answered(groups.map(async ([index, ids]) => this.#part(index).takeRuns(node, ids)))).flat();
  }

  async heldRuns(node: string, after: string, limit: number): Promise<string[]> {
    const found = await answered(this.#parts.map((part) => part.heldRuns(node, after, limit)));
    return found.flat().sort().slice(0, limit);
  }

  async freeRuns(node: string, run_ids: readonly string[]): Promise<void> {
    const groups = byPart(run_ids, (id) => this.#partitions.of(id));
    await answered(groups.map(([index, ids]) => this.#part(index).freeRuns(node, ids)));
  }

  #part(index: number): RunClaims {
    const part = this.#parts[index];
    if (part === undefined) throw new RangeError(`the store has no part ${index}`);
    return part;
  }
}
