import { needsAgent, needsExecution, type RunClaims } from '../../core/ports/run-claims.ts';
import type { WrittenRow } from '../../core/ports/run-store.ts';
import { Keyspace } from './keyspace.ts';

/** Dead nodes, and runs of theirs, that one claim examines: about 5 ms, during which Redis serves no other command. */
const examined = 500;

/** Which node has each run of a Redis store. */
export class RedisClaims extends Keyspace implements RunClaims {
  async renewLease(node: string, milliseconds: number): Promise<boolean> {
    await this.redis.rivuletRenewLease(...this.keys, node, milliseconds);
    return false;
  }

  async endLease(node: string): Promise<void> {
    await this.redis.rivuletEndLease(...this.keys, node);
  }

  async claimRuns(node: string, agents: readonly string[], limit: number): Promise<string[]> {
    return this.redis.rivuletClaimRuns(...this.keys, node, limit, examined, ...agents);
  }

  async takeRuns(node: string, run_ids: readonly string[]): Promise<string[]> {
    return this.redis.rivuletTakeRuns(...this.keys, node, ...run_ids);
  }

  async heldRuns(node: string, after: string, limit: number): Promise<string[]> {
    return this.redis.zrangebylex(this.keyOf('held', node), `(${after}`, '+', 'LIMIT', 0, limit);
  }

  async freeRuns(node: string, run_ids: readonly string[]): Promise<void> {
    await this.redis.rivuletFreeRuns(...this.keys, node, ...run_ids);
  }
}

/** The fields of a run by which scripts decide whether it waits for a node, and for which. */
export const needsOf = (row: WrittenRow): { needs_node: '1' | '0'; needs_agent: '1' | '0' } => ({
  needs_node: needsExecution(row) ? '1' : '0',
  needs_agent: needsAgent(row) ? '1' : '0',
});
