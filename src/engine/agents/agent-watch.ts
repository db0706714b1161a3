/** Is told which agent this thread executes. */
export interface AgentWatch {
  enter(agent_name: string, run_id: string): void;
  leave(): void;
}

let watch: AgentWatch | undefined;

/** Sets what is told which agent this thread executes. There is one for all engines, as they share the event loop. */
export function watchAgents(next: AgentWatch): void {
  watch = next;
}

/** Calls into the code of an agent. What the agent does later, after a promise of its own, is no part of the call. */
export function inAgent(agent_name: string, run_id: string, call: () => void): void {
  if (watch === undefined) {
    call();
    return;
  }
  watch.enter(agent_name, run_id);
  try {
    call();
  } finally {
    watch.leave();
  }
}
