import type { AgentManifest } from '../client/client.ts';

export interface SamplePrompt {
  readonly title: string;
  readonly prompt: string;
}

/** Prompts that a card shows. */
const maxPrompts = 4;

/** The examples of a manifest. A text is its own title; other values, of an agent with keys of its own, are left out. */
export function promptsOf({ metadata = {} }: AgentManifest): SamplePrompt[] {
  const examples: unknown = 'examples' in metadata ? metadata.examples : undefined;
  if (!Array.isArray(examples)) return [];
  return examples.flatMap(promptOf).slice(0, maxPrompts);
}

function promptOf(example: unknown): SamplePrompt[] {
  if (typeof example === 'string') return [{ title: example, prompt: example }];
  if (typeof example !== 'object' || example === null || !('prompt' in example)) return [];
  const { prompt } = example;
  if (typeof prompt !== 'string') return [];
  return [{ title: 'title' in example ? String(example.title) : prompt, prompt }];
}
