import { isObject } from '../../core/json.ts';
import type { Batch } from '../../core/ports/run-store.ts';
import { isFinal } from '../../core/run-state.ts';
import type { Access } from '../../engine/access.ts';
import type { Message } from '../../schema/message.ts';
import type { RunDetails, RunSummary } from '../../schema/run.ts';
import { type Chunk, chunksOf, eventIn, finishOf, nothingOpen } from './projection.ts';
import { messageIdOf, type UIPart, uiPartsOf } from './ui-parts.ts';

export interface UIMessage {
  readonly id: string;
  readonly role: 'user' | 'assistant';
  readonly parts: readonly UIPart[];
  readonly metadata?: unknown;
}

export interface Transcript {
  /** Oldest first. */
  readonly messages: readonly UIMessage[];
  /** Where the page before this one ends; absent where the transcript begins here. */
  readonly next_cursor?: string;
}

/** What a page asks for. */
export interface TranscriptRequest {
  readonly session_id: string;
  /** Only turns before this run. */
  readonly before?: string | undefined;
  readonly limit: number;
  /** The run whose stream the page reads next: its answer is left to that stream. */
  readonly resumed?: string | undefined;
  /** Default: what the request of each run says. */
  readonly approvals?: boolean | undefined;
}

/**
 * The turns of a session as UI messages: what its users have said, and what the runs have answered so far. The newest turns
 * are read first, and a page has as many as one answer may hold.
 */
export async function transcriptOf(own: Access, asked: TranscriptRequest): Promise<Transcript> {
  const { session_id, before, limit } = asked;
  const { runs, next } = await own.runs({ session_id }, before, limit);
  const listed = runs.map((run): RunSummary => JSON.parse(run));
  const { found, last } = await own.page(listed, (run) => turnOf(own, run, asked));
  const next_cursor = last?.run_id ?? next;
  return { messages: found.reverse().flat(), next_cursor };
}

async function turnOf(
  own: Access,
  { run_id, status }: RunSummary,
  { resumed, approvals }: TranscriptRequest,
): Promise<UIMessage[]> {
  const { input, questions }: RunDetails = JSON.parse(await own.details(run_id));
  const said = input.map((message, index) => saidIn(message, messageIdOf(run_id, message, index)));
  // It may have ended meanwhile.
  if (run_id === resumed && !isFinal(status)) return said;
  // Only a question may be an approval.
  const asApprovals = questions !== undefined && (approvals ?? (await wantsApprovals(own, run_id)));
  // The Run has been counted with its output, which the answer has as well.
  const log = await own.stream(run_id, { until: 'now', keeps: false });
  return [...said, await answerOf(run_id, log, asApprovals)];
}

/** Whether the request of a run has asked for approvals, which its later readers get as well. */
export async function wantsApprovals(own: Access, run_id: string): Promise<boolean> {
  return (await own.request(run_id)).metadata?.approvals === true;
}

function saidIn({ role, parts, metadata }: Message & { readonly metadata?: unknown }, id: string): UIMessage {
  return { id, role: role === 'user' ? 'user' : 'assistant', parts: uiPartsOf(parts), metadata };
}

/** The message that a chat makes of the streams of a run, and of what its person has answered. */
export async function answerOf(run_id: string, log: AsyncIterable<Batch>, approvals: boolean): Promise<UIMessage> {
  const message = new Answer(run_id);
  let open = nothingOpen;
  for await (const { first, lines } of log) {
    for (const [index, line] of lines.entries()) {
      const event = eventIn(line);
      if (event.type === 'run.in-progress') message.reply = event.run.await_resume?.message;
      const step = chunksOf(open, event, first + index, approvals);
      open = step.open;
      for (const chunk of step.chunks) message.add(chunk);
    }
  }
  const finish = finishOf(open);
  if (finish !== undefined) message.add(finish);
  return message;
}

/** Folds chunks as the clients do. */
class Answer implements UIMessage {
  readonly id: string;
  readonly role = 'assistant';
  readonly parts: UIPart[] = [];
  metadata: object = {};
  /** The last reply to a question. */
  reply: (Message & { readonly reason?: unknown }) | undefined;
  /** Texts, tool calls and data by their ids, which later chunks add to. */
  readonly #open = new Map<unknown, { [property: string]: unknown; type: string }>();

  constructor(id: string) {
    this.id = id;
  }

  toJSON(): UIMessage {
    const { id, role, metadata, parts } = this;
    return { id, role, metadata, parts };
  }

  add(chunk: Chunk): void {
    const { type, id, toolCallId, messageMetadata, providerMetadata } = chunk;
    if (typeof messageMetadata === 'object') this.metadata = { ...this.metadata, ...messageMetadata };
    switch (type) {
      case 'start-step':
        this.#push(undefined, { type: 'step-start' });
        break;
      case 'text-start':
      case 'reasoning-start':
        this.#push(id, { type: type.slice(0, -'-start'.length), text: '', state: 'streaming' });
        break;
      case 'text-delta':
      case 'reasoning-delta':
        this.#change(id, ({ text }) => ({ text: `${text}${chunk.delta}` }));
        break;
      case 'text-end':
      case 'reasoning-end':
        this.#change(id, () => ({ state: 'done', providerMetadata }));
        break;
      case 'tool-input-available':
        this.#push(toolCallId, { ...toolPart(chunk), state: 'input-available', input: chunk.input });
        break;
      case 'tool-output-available':
        this.#change(toolCallId, (part) => ({
          state: 'output-available',
          output: chunk.output,
          ...this.#decided(part, true),
        }));
        break;
      case 'tool-approval-request':
        this.#change(toolCallId, () => ({ state: 'approval-requested', approval: { id: chunk.approvalId } }));
        break;
      case 'tool-output-denied':
        this.#change(toolCallId, (part) => ({ state: 'output-denied', ...this.#decided(part, false) }));
        break;
      case 'tool-output-error':
        this.#change(toolCallId, () => ({ state: 'output-error', errorText: chunk.errorText }));
        break;
      case 'source-url':
      case 'file':
        this.#push(undefined, chunk);
        break;
      default:
        if (type.startsWith('data-')) this.#put(chunk);
    }
  }

  /** What the chat keeps of it in which a person has decided. Nothing where the question is no approval. */
  #decided({ approval }: UIPart, approved: boolean): object {
    const { reason } = this.reply ?? {};
    if (!isObject(approval)) return {};
    return { approval: { ...approval, approved, ...(typeof reason === 'string' && { reason }) } };
  }

  /** Data replaces the earlier data of its type and id. */
  #put(chunk: Chunk): void {
    const key = `${chunk.type} ${chunk.id}`;
    if (this.#open.has(key)) this.#change(key, () => ({ data: chunk.data }));
    else this.#push(key, chunk);
  }

  #push(id: unknown, part: UIPart): void {
    const own = { ...part };
    this.parts.push(own);
    if (id !== undefined) this.#open.set(id, own);
  }

  #change(id: unknown, change: (part: UIPart) => object): void {
    const part = this.#open.get(id);
    if (part !== undefined) Object.assign(part, change(part));
  }
}

function toolPart({ dynamic, toolName, toolCallId, providerExecuted }: Chunk): UIPart {
  return {
    type: dynamic === true ? 'dynamic-tool' : `tool-${toolName}`,
    ...(dynamic === true && { toolName }),
    toolCallId,
    providerExecuted,
  };
}
