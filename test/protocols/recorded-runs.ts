import { expect } from 'vitest';
import type { Store } from '../../src/core/ports/store.ts';
import { runEventOf } from '../../src/core/recognize.ts';
import type { AgentRequest } from '../../src/core/request.ts';
import { isFinal } from '../../src/core/run-state.ts';
import type { Dispatcher } from '../../src/engine/dispatch/dispatcher.ts';
import { newId } from '../../src/engine/ids.ts';
import type { Message } from '../../src/schema/message.ts';
import type { RunStatus } from '../../src/schema/run.ts';
import { append, fresh, type TestWrite } from '../stores/writes.ts';

/** Executes nothing: recorded runs stay as they are, until a test appends to them. */
export const idle: Dispatcher = {
  shared: true,
  node: 'idle',
  leasedSince: () => 0,
  whenRenewed: async () => {},
  reserve: () => undefined,
  onWaiting: () => {},
  onSlotFree: () => {},
  offer: () => {},
  start: async () => {},
  pause: async () => {},
  close: async () => {},
};

const statusOf = (log: readonly string[]): [RunStatus, number] => {
  const at = log.findLastIndex((line) => runEventOf(line) !== undefined);
  return [runEventOf(log[at] ?? '') as RunStatus, at + 1];
};

/** A run that the store has as if another node executed it. */
export class RecordedRun {
  readonly run_id: string = newId();
  readonly session_id: string;
  readonly messages: (Message & { readonly id: string })[];
  /** The whole log, also the events that the store does not have yet. */
  readonly log: readonly string[];
  readonly #store: Store;
  readonly #row: TestWrite['row'];
  readonly #request: AgentRequest;
  #stored: TestWrite['row'] | undefined;

  /** `given`: a log of `logs` or `busyLogs`, which gets the ids of this run. */
  constructor(store: Store, session_id: string, given: readonly string[], n: number, request: AgentRequest) {
    this.#store = store;
    this.log = given.map((line) =>
      line.replaceAll(/01990000-0000-7000-8000-00000000000([12])/g, (_, one) =>
        one === '1' ? this.run_id : session_id,
      ),
    );
    this.#row = fresh({ run_id: this.run_id, session_id });
    this.session_id = session_id;
    this.messages = [{ id: `u${n}`, role: 'user', parts: [{ content_type: 'text/plain', content: `Say ${n}` }] }];
    this.#request = request;
  }

  /** The status that the stored events lead to. */
  get status(): RunStatus {
    return statusOf(this.stored)[0];
  }

  /** The events that the store has. */
  get stored(): readonly string[] {
    return this.log.slice(0, this.#stored?.last ?? 0);
  }

  /** Stores the next events, up to event `end`. */
  async store(end: number): Promise<void> {
    const row = this.#stored ?? this.#row;
    if (end <= row.last) return;
    const [status, snapshot] = statusOf(this.log.slice(0, end));
    const now = new Date().toISOString();
    const next = { ...row, status, snapshot, status_at: now, finished_at: isFinal(status) ? now : null };
    const input = { messages: this.messages, request: this.#request };
    const write = append(next, this.log.slice(row.last, end), row.last === 0 ? { input } : {});
    expect(await this.#store.commit([write])).toEqual(['taken']);
    this.#stored = write.row;
  }
}

/** The response up to a place, where its reader leaves: nothing ends the streams of recorded runs. */
export function until(isEnough: (seen: string) => boolean, response: Response): Response {
  const text = new TextDecoder();
  let seen = '';
  const leave = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      seen += text.decode(chunk, { stream: true });
      controller.enqueue(chunk);
      if (isEnough(seen)) controller.terminate();
    },
  });
  return response.body === null ? response : new Response(response.body.pipeThrough(leave), response);
}
