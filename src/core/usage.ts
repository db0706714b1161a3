import type { RunUsage } from '../schema/run.ts';

/** A run's sum grows no further: one that became infinite would be null in JSON, and break the metrics. */
const maxUsage = Number.MAX_SAFE_INTEGER;

/** Adds what an agent reports. The parts of the sum appear once they are reported. */
export function addUsage(before: RunUsage | undefined, used: RunUsage): RunUsage {
  const sum: RunUsage = { ...before, tokens: sumOf(before?.tokens, used.tokens) };
  if (used.input_tokens !== undefined) sum.input_tokens = sumOf(sum.input_tokens, used.input_tokens);
  if (used.output_tokens !== undefined) sum.output_tokens = sumOf(sum.output_tokens, used.output_tokens);
  return sum;
}

/** What was reported after `before`, which is an earlier usage of the same run. */
export function usageAfter(before: RunUsage | undefined, usage: RunUsage | undefined): RunUsage | undefined {
  if (before === undefined || usage === undefined) return usage;
  const { tokens, input_tokens, output_tokens } = usage;
  // A re-entered agent may report less than before.
  const more = (now: number, earlier = 0): number => Math.max(0, now - earlier);
  return {
    tokens: more(tokens, before.tokens),
    ...(input_tokens !== undefined && { input_tokens: more(input_tokens, before.input_tokens) }),
    ...(output_tokens !== undefined && { output_tokens: more(output_tokens, before.output_tokens) }),
  };
}

const sumOf = (before = 0, used: number): number => Math.min(before + used, maxUsage);
