import type { RunClaims } from '../../core/ports/run-claims.ts';
import type { Parts } from './parts.ts';

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
  readonly #parts: Parts<{ readonly claims: RunClaims }>;
  /** Of each node of this process, by part. */
  readonly #leases = new Map<string, Lease[]>();

  constructor(parts: Parts<{ readonly claims: RunClaims }>) {
    this.#parts = parts;
  }

  async renewLease(node: string, milliseconds: number): Promise<void> {
    const began = performance.now();
    const leases = this.#leases.get(node) ?? [];
    this.#leases.set(node, leases);
    const late = new Set(Array(this.#parts.count).keys());
    const renewed = this.#parts.answered(async ({ claims }, index) => {
      await claims.renewLease(node, milliseconds);
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
      await renewed;
    } finally {
      for (const index of late) leases[index] = { ...(leases[index] ?? noLease), isAway: true };
    }
  }

  async endLease(node: string): Promise<void> {
    this.#leases.delete(node);
    await this.#parts.each(({ claims }) => claims.endLease(node));
  }

  async claimRuns(node: string, agents: readonly string[], limit: number): Promise<string[]> {
    return this.#parts.inTurn(limit, async ({ claims }, rest, index) => {
      const { endsAt, claimsFrom, isAway } = this.#leases.get(node)?.[index] ?? noLease;
      const now = performance.now();
      return isAway || endsAt < now || claimsFrom > now ? [] : claims.claimRuns(node, agents, rest);
    });
  }

  async takeRuns(node: string, run_ids: readonly string[]): Promise<string[]> {
    const groups = this.#parts.group(run_ids);
    const ask = ({ claims }: { claims: RunClaims }, index: number) => claims.takeRuns(node, groups.get(index) ?? []);
    return (await this.#parts.answered(ask, groups.keys())).flat();
  }

  async heldRuns(node: string, after: string, limit: number): Promise<string[]> {
    const found = await this.#parts.answered(({ claims }) => claims.heldRuns(node, after, limit));
    return found.flat().sort().slice(0, limit);
  }

  async freeRuns(node: string, run_ids: readonly string[]): Promise<void> {
    const groups = this.#parts.group(run_ids);
    await this.#parts.answered(({ claims }, index) => claims.freeRuns(node, groups.get(index) ?? []), groups.keys());
  }
}
