import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { merge } from 'rxjs';
import { type Agent, type AgentFunction, defineAgent } from '../../src/core/agent.ts';
import type { Limits } from '../../src/engine/limits.ts';
import { never, replyTo } from './takeovers.ts';

const script = resolve(import.meta.dirname, 'owner-process.ts');

/** Leases end soon, so that another node takes over in seconds. */
export const limits: Partial<Limits> = { lease: 1_500, requestTimeout: 4_000, shutdownGrace: 0 };

/** Agents that tell their process what they do. */
export function ownedAgents(say: (line: string) => void): Agent[] {
  /** Asks beside a step that never ends. */
  const asks: AgentFunction = (_, context) => {
    const work = (): Promise<string> => {
      say(`work of ${context.run_id}`);
      return never();
    };
    return merge(context.step('work', work), replyTo(context, 'Go on?'));
  };
  /** Works until it is cancelled, and cleans up; as `next`, it ends at once. */
  async function* works(...[[message], { signal, run_id }]: Parameters<AgentFunction>) {
    say(`begin of ${run_id}`);
    yield 'word';
    if (message?.parts[0]?.content === 'next') return;
    try {
      await new Promise((_, reject) => signal.addEventListener('abort', reject));
    } finally {
      await pause(300);
      say(`end of ${run_id}`);
    }
  }
  const options = { durable: true };
  return [
    defineAgent({ name: 'asks', description: 'Asks at its work.' }, asks, options),
    defineAgent({ name: 'works', description: 'Works until it is cancelled.' }, works, options),
  ];
}

/** A process that executes the runs of a store, and can be paused and killed. */
export class OwnerNode {
  readonly #child: ChildProcess;
  #out = '';

  private constructor(url: string) {
    this.#child = spawn(process.execPath, ['--import', 'tsx', script, url], { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#child.stdout?.setEncoding('utf8').on('data', (chunk) => {
      this.#out += chunk;
    });
  }

  static async start(url: string): Promise<OwnerNode> {
    const node = new OwnerNode(url);
    await node.said('ready');
    return node;
  }

  /** What its agents have done. */
  get lines(): string[] {
    return this.#out.split('\n').slice(0, -1);
  }

  /** Resolves when it has printed this line. */
  async said(line: string): Promise<void> {
    while (!this.lines.includes(line)) {
      if (this.#child.exitCode !== null) throw new Error('the process has ended');
      await Promise.race([once(this.#child.stdout ?? this.#child, 'data'), once(this.#child, 'exit')]);
    }
  }

  pause(): void {
    this.#child.kill('SIGSTOP');
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}
