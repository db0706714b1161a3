import type { RunClaims } from '../../core/ports/run-claims.ts';
import type { Parts } from './parts.ts';

/** A part with which a node could not renew its lease gives it no runs of others for this share of a lease afterwards. */
const caution = 1 / 3;

/** What a node knows of its lease in one part, in milliseconds of `performance.now`. */
interface Lease {
  /** Since when it has had the lease, which has not ended since. */
  readonly since: number;
  readonly endsAt: number;
  /** When it may claim there. */
  readonly claimsFrom: number;
  /** Whether a call to the part got no answer since the last renewal. The lost answer may have given runs to the node. */
  readonly isAway: boolean;
}

/** A part of a store, as far as claims need it. */
interface Claiming {
  readonly claims: RunClaims;
}

const noLease: Lease = { since: 0, endsAt: 0, claimsFrom: 0, isAway: false };

/**
 * Which node has each run, where each part of the store has leases of its own. A node lives as long as some part renews its
 * lease. It claims no runs in a part that does not answer, nor at once when that part answers again: the leases of the other
 * nodes, which live, may have ended there, also while this node was starting.
 */
export class ClusterClaims implements RunClaims {
  readonly #parts: Parts<Claiming>;
  /** Of each node of this process, by part. */
  readonly #leases = new Map<string, Lease[]>();
  /** The nodes that have not yet heard that a part answers again. */
  readonly #inDoubt = new Set<string>();

  constructor(parts: Parts<Claiming>) {
    this.#parts = parts;
  }

  async renewLease(node: string, milliseconds: number): Promise<boolean> {
    const began = performance.now();
    const leases = this.#leases.get(node) ?? [];
    this.#leases.set(node, leases);
    await this.#answered(node, async (claims, index) => {
      await claims.renewLease(node, milliseconds);
      const { since, endsAt, claimsFrom, isAway } = leases[index] ?? noLease;
      const now = performance.now();
      const hadEnded = endsAt <= now;
      leases[index] = {
        since: hadEnded ? now : since,
        endsAt: began + milliseconds,
        claimsFrom: hadEnded && (endsAt > 0 || isAway) ? now + caution * milliseconds : claimsFrom,
        isAway: false,
      };
      if (isAway) this.#inDoubt.add(node);
    });
    return this.#inDoubt.delete(node);
  }

  leasedSince(node: string, run_id: string): number | undefined {
    const { since, endsAt } = this.#leases.get(node)?.[this.#parts.of(run_id)] ?? noLease;
    return performance.now() < endsAt ? since : undefined;
  }

  async endLease(node: string): Promise<void> {
    this.#leases.delete(node);
    this.#inDoubt.delete(node);
    await this.#parts.each(({ claims }) => claims.endLease(node));
  }

  async claimRuns(node: string, agents: readonly string[], limit: number): Promise<string[]> {
    const now = performance.now();
    const leased = (this.#leases.get(node) ?? []).flatMap(({ endsAt, claimsFrom, isAway }, index) =>
      isAway || endsAt < now || claimsFrom > now ? [] : [index],
    );
    const unanswered = new Set<number>();
    const claim = async ({ claims }: Claiming, rest: number, index: number): Promise<string[]> => {
      unanswered.add(index);
      const run_ids = await claims.claimRuns(node, agents, rest);
      unanswered.delete(index);
      return run_ids;
    };
    return this.#orAway(node, unanswered, this.#parts.inTurn(limit, claim, leased));
  }

  async takeRuns(node: string, run_ids: readonly string[]): Promise<string[]> {
    const groups = this.#parts.group(run_ids);
    const take = (claims: RunClaims, index: number) => claims.takeRuns(node, groups.get(index) ?? []);
    return (await this.#answered(node, take, groups.keys())).flat();
  }

  async heldRuns(node: string, after: string, limit: number): Promise<string[]> {
    const found = await this.#answered(node, (claims) => claims.heldRuns(node, after, limit));
    return found.flat().sort().slice(0, limit);
  }

  async freeRuns(node: string, run_ids: readonly string[]): Promise<void> {
    const groups = this.#parts.group(run_ids);
    await this.#answered(node, (claims, index) => claims.freeRuns(node, groups.get(index) ?? []), groups.keys());
  }

  /** Asks all parts, or some. See `Parts.answered`. */
  #answered<Answer>(
    node: string,
    ask: (claims: RunClaims, index: number) => Promise<Answer>,
    indexes: Iterable<number> = Array(this.#parts.count).keys(),
  ): Promise<Answer[]> {
    const unanswered = new Set(indexes);
    const answered = this.#parts.answered(async ({ claims }, index) => {
      const answer = await ask(claims, index);
      unanswered.delete(index);
      return answer;
    }, unanswered);
    return this.#orAway(node, unanswered, answered);
  }

  /** Waits for a call. The parts that are then unanswered are away for a node. */
  async #orAway<T>(node: string, unanswered: ReadonlySet<number>, call: Promise<T>): Promise<T> {
    try {
      return await call;
    } finally {
      const leases = this.#leases.get(node) ?? [];
      for (const index of unanswered) leases[index] = { ...(leases[index] ?? noLease), isAway: true };
    }
  }
}
