import {
  type AgentInputItem,
  type CallModelInputFilter,
  RunContext,
  type Runner,
  RunState,
  type RunStreamEvent,
  run,
  type StreamedRunResult,
  type StreamRunOptions,
} from '@openai/agents';
import { concat, concatMap, defer, from, type Observable, switchMap, tap, toArray } from 'rxjs';
import type { AgentContext, AgentFunction, AgentOutput } from '../core/agent.ts';
import { type Approval, askApproval, unknownOutcome } from '../core/approval.ts';
import type { CutOff } from '../core/cut-off.ts';
import { isObject, parsed } from '../core/json.ts';
import { brokenConnection, brokenOff } from '../core/model-errors.ts';
import { modelMessages, modelTools } from '../core/model-messages.ts';
import { type Said, type SaidCall, saidIn } from '../core/said.ts';
import { contentsSaid, conversation, cutOffFrom, noResult, urlOf, usageOf } from './conversation.ts';
import {
  assistantText,
  type Call,
  continued,
  isCall,
  isComplete,
  itemsOf,
  OutputOfPieces,
  openCalls,
  type Piece,
  resultFor,
  resultsIn,
} from './openai-agents-items.ts';

/** An `Agent` of the SDK, with any context and output. */
export type OpenAiAgent = Parameters<typeof run>[0];

export interface OpenAiAgentOptions {
  /** Default: the SDK's default runner. */
  readonly runner?: Runner;
  /** Further options of each run of the SDK, such as `maxTurns` or a `context`, which has to be JSON. */
  readonly options?: (context: AgentContext) => Omit<StreamRunOptions<unknown>, 'stream' | 'signal'>;
}

/**
 * The function of an agent that the OpenAI Agents SDK executes. The model gets the session's history and the input. Each
 * answer of a model is one message of the output; a tool that needs an approval is a question with a boolean reply.
 * In a durable run the stream is journaled, and the SDK's RunState while approvals are open. After a crash the model gets
 * what the journal has, with the results of tools, and continues from there.
 */
export function openAiAgent(agent: OpenAiAgent, options: OpenAiAgentOptions = {}): AgentFunction {
  return (input, context) =>
    conversation(input, context).pipe(
      switchMap((messages) =>
        new Conversation(agent, options, context).turn({ items: saidIn(messages).flatMap(toItems) }),
      ),
    );
}

/** Where a turn begins: with a list of items, or with the state in which the SDK asked for approvals. */
type Start = { readonly items: AgentInputItem[] } | Asked;
interface Asked {
  readonly state: string;
  readonly approvals: readonly Approval[];
}

/** One run of an agent. */
class Conversation {
  readonly #agent: OpenAiAgent;
  readonly #options: OpenAiAgentOptions;
  readonly #context: AgentContext;
  readonly #output = new OutputOfPieces();
  /** The agent that works now, after handoffs. */
  #active: string;

  constructor(agent: OpenAiAgent, options: OpenAiAgentOptions, context: AgentContext) {
    this.#agent = agent;
    this.#options = options;
    this.#context = context;
    this.#active = agent.name;
  }

  /** The SDK until it ends or asks for approvals; then again with the replies. */
  turn(start: Start): Observable<AgentOutput> {
    const context = this.#context;
    let interrupted: Extract<Piece, { type: 'interrupted' }> | undefined;
    const collect = (piece: Piece): void => {
      if (piece.type === 'interrupted') interrupted = piece;
      if (piece.type === 'agent') this.#active = piece.name;
      if (piece.type === 'response') context.usage(piece.usage);
    };
    const step = context.step<Piece>(
      'openai-agents',
      () => this.#begin(start),
      (before) => this.#goOn(start, before),
    );
    const next = defer(() => {
      if (interrupted === undefined) return [];
      const { state, approvals } = interrupted;
      return from(approvals).pipe(
        concatMap(({ name, input }) => askApproval(context, name, input)),
        toArray(),
        switchMap((given) => this.turn({ state, approvals: given })),
      );
    });
    return concat(
      step.pipe(
        tap(collect),
        concatMap((piece) => this.#output.of(piece)),
      ),
      next,
    );
  }

  async *#begin(start: Start): AsyncGenerator<Piece> {
    if ('items' in start) {
      yield* this.#pieces(this.#agent, start.items);
      return;
    }
    const state = await RunState.fromString(this.#agent, start.state);
    for (const [index, item] of state.getInterruptions().entries()) {
      const { approved = false, reason } = start.approvals[index] ?? {};
      if (approved) state.approve(item);
      else state.reject(item, reason === undefined ? {} : { message: reason });
    }
    // The SDK executes the approved tools before anything that it tells.
    if (start.approvals.some(({ approved }) => approved)) {
      yield { type: 'approved' };
      await this.#context.committed();
    }
    yield* this.#pieces(this.#agent, state);
  }

  /** After a crash: the model continues with the items of the journal, and of the state before. */
  async *#goOn(start: Start, before: readonly Piece[]): AsyncGenerator<Piece> {
    yield { type: 'cut' };
    if (isComplete(before)) return;
    if (!before.some((piece) => 'items' in piece || piece.type === 'text' || piece.type === 'approved')) {
      yield* this.#begin(start);
      return;
    }
    const agent = agentNamed(this.#active, this.#agent) ?? this.#agent;
    const items = 'items' in start ? start.items : await this.#asked(start, before);
    const done = resultsIn([...items, ...itemsOf(before)]);
    const approved = items.filter(isCall).filter(({ callId }) => !done.has(callId));
    const cutOff = (call: Call): Piece => ({ type: 'result', items: [resultFor(call, unknownOutcome)] });
    const more = approved.map(cutOff);
    for (const call of openCalls(before))
      more.push((await this.#asks(agent, call)) ? { type: 'dropped', call } : cutOff(call));
    yield* more;
    yield* this.#pieces(agent, continued(items, [...before, ...more]));
  }

  /** Whether the SDK asks a person before it executes the call: without an approval it was not executed. */
  async #asks(agent: OpenAiAgent, call: Call): Promise<boolean> {
    const tool = agent.tools.find((one) => one.type === 'function' && one.name === call.name);
    if (tool?.type !== 'function') return false;
    const given = new RunContext(this.#options.options?.(this.#context).context);
    return tool.needsApproval(given, parsed(call.arguments), call.callId);
  }

  /**
   * The items up to the approvals, and then the calls that a person was asked about, each denied one with its result. The state
   * does not have these calls among its items.
   */
  async #asked({ state, approvals }: Asked, before: readonly Piece[]): Promise<AgentInputItem[]> {
    const saved = await RunState.fromString(this.#agent, state);
    const done = resultsIn(itemsOf(before));
    const asked = saved.getInterruptions().flatMap(({ rawItem: call }, index): AgentInputItem[] => {
      if (call.type !== 'function_call') return [];
      const { approved = false, reason = 'Tool execution was not approved.' } = approvals[index] ?? {};
      if (approved || done.has(call.callId)) return [call];
      return [call, resultFor(call, reason)];
    });
    return [...saved.history, ...asked];
  }

  async *#pieces(agent: OpenAiAgent, input: AgentInputItem[] | RunState<unknown, OpenAiAgent>): AsyncGenerator<Piece> {
    const { runner, options } = this.#options;
    const calls = new ModelCalls(this.#context, runner?.config.model);
    const own = options?.(this.#context);
    const callModelInputFilter = calls.filter(own?.callModelInputFilter ?? runner?.config.callModelInputFilter);
    const given = { ...own, callModelInputFilter, stream: true as const, signal: this.#context.signal };
    const end = new EndMark();
    try {
      const result = await (runner === undefined ? run(agent, input, given) : runner.run(agent, input, given));
      for await (const event of result) {
        if (event.type === 'raw_model_stream_event') {
          end.read(event.data);
          calls.read(event.data);
        }
        const piece = pieceOf(event);
        if (piece === undefined) continue;
        yield piece;
        if (piece.type === 'response' && end.cutOff !== undefined) yield { type: 'cut-off', reason: end.cutOff };
      }
      await result.completed;
      yield endOf(result);
    } catch (error) {
      calls.failed(error);
      throw brokenConnection(error) ?? error;
    }
  }
}

function endOf({ interruptions = [], state }: StreamedRunResult<unknown, OpenAiAgent>): Piece {
  if (interruptions.length === 0) return { type: 'end' };
  const approvals = interruptions.map((item) => ({ name: item.name ?? 'tool', input: parsed(item.arguments ?? '{}') }));
  return { type: 'interrupted', state: state.toString(), approvals };
}

/** How each answer of a model ends, in the chunks of OpenAI's two interfaces. The SDK takes a half answer for a whole one. */
class EndMark {
  #hasChunks = false;
  #reason: unknown;

  /** @throws AgentError where the answer ends without a mark */
  read(data: { readonly type: string; readonly event?: unknown }): void {
    if (data.type === 'response_started') [this.#hasChunks, this.#reason] = [false, undefined];
    if (data.type === 'response_done' && this.#hasChunks && this.#reason === undefined) throw brokenOff();
    const { event } = data;
    if (data.type !== 'model' || !isObject(event)) return;
    if (event.object === 'chat.completion.chunk' && Array.isArray(event.choices)) {
      this.#hasChunks = true;
      this.#reason = event.choices[0]?.finish_reason ?? this.#reason;
    } else if (event.type === 'response.incomplete' && isObject(event.response)) {
      const { incomplete_details: details } = event.response;
      this.#reason = isObject(details) ? details.reason : undefined;
    }
  }

  get cutOff(): CutOff | undefined {
    return cutOffFrom(this.#reason);
  }
}

function pieceOf(event: RunStreamEvent): Piece | undefined {
  if (event.type === 'agent_updated_stream_event') return { type: 'agent', name: event.agent.name };
  if (event.type === 'raw_model_stream_event') {
    const { data } = event;
    if (data.type === 'output_text_delta' && data.delta !== '') return { type: 'text', text: data.delta };
    if (data.type !== 'response_done') return undefined;
    const { output, usage } = data.response;
    const { inputTokens, outputTokens, totalTokens } = usage;
    return { type: 'response', items: output, usage: usageOf(inputTokens, outputTokens, totalTokens) };
  }
  // Everything else is in the response.
  const { name, item } = event;
  if ((name !== 'tool_output' && name !== 'handoff_occurred') || item.rawItem === undefined) return undefined;
  return { type: 'result', items: [item.rawItem] };
}

/** The agent of that name among those that an agent can hand off to. */
function agentNamed(name: string, agent: OpenAiAgent, seen = new Set<OpenAiAgent>()): OpenAiAgent | undefined {
  if (agent.name === name) return agent;
  if (seen.has(agent)) return undefined;
  seen.add(agent);
  for (const target of agent.handoffs) {
    const found = agentNamed(name, 'agent' in target ? target.agent : target, seen);
    if (found !== undefined) return found;
  }
  return undefined;
}

function toItems(said: Said): AgentInputItem[] {
  const contents = contentsSaid(said);
  if (said.role !== 'user') {
    const text = contents.map((one) => ('text' in one ? one.text : '')).join('');
    const calls = said.calls.map(({ id, name, input }) => ({
      type: 'function_call' as const,
      callId: id,
      name,
      arguments: JSON.stringify(input),
      status: 'completed' as const,
    }));
    const results = calls.map((call, index) => resultFor(call, outputOf(said.calls[index]?.result)));
    return [...(text === '' ? [] : [assistantText(text)]), ...calls, ...results];
  }
  const content = contents.map((one) => {
    if ('text' in one) return { type: 'input_text' as const, text: one.text };
    if (/^image\//i.test(one.type)) return { type: 'input_image' as const, image: urlOf(one) };
    const file = 'url' in one ? { url: one.url } : urlOf(one);
    return { type: 'input_file' as const, file, ...(one.name !== undefined && { filename: one.name }) };
  });
  return content.length === 0 ? [] : [{ type: 'message', role: 'user', content }];
}

const outputOf = ({ tool_output, tool_error = noResult }: SaidCall['result'] = {}): string =>
  tool_output === undefined ? tool_error : JSON.stringify(tool_output);

type ModelEvent = Extract<RunStreamEvent, { type: 'raw_model_stream_event' }>['data'];

/** A call of a model that has begun. */
interface BegunCall {
  readonly agent: Parameters<CallModelInputFilter>[0]['agent'];
  readonly instructions: string | undefined;
  readonly input: readonly unknown[];
  readonly started: number;
}

/** Reports the calls of a model that one run of the SDK makes. */
class ModelCalls {
  readonly #context: AgentContext;
  /** The model of agents that name none. */
  readonly #model: unknown;
  /** The SDK may be a call ahead of the reader of its stream. */
  readonly #begun: BegunCall[] = [];
  #firstToken: number | undefined;
  #answered: unknown;
  #reason: unknown;

  constructor(context: AgentContext, model: unknown) {
    this.#context = context;
    this.#model = model;
  }

  /** The SDK asks it before each call what the model gets: a filter of the user's own decides that. */
  filter(own: CallModelInputFilter | undefined): CallModelInputFilter {
    return async (call) => {
      const told = own === undefined ? call.modelData : await own(call);
      const { input, instructions } = told;
      // The SDK goes on with the same objects, which nothing changes before the answer.
      this.#begun.push({ agent: call.agent, instructions, input, started: Date.now() });
      return told;
    };
  }

  read(data: ModelEvent): void {
    if (data.type === 'output_text_delta') this.#firstToken ??= Date.now();
    if (data.type === 'model') this.#readChunk(data.event);
    if (data.type !== 'response_done') return;
    const { id, output, usage } = data.response;
    const { input_tokens, output_tokens } = usageOf(usage.inputTokens, usage.outputTokens, undefined);
    this.#report({
      output: modelMessages(output),
      input_tokens,
      output_tokens,
      response_id: id,
      ...(typeof this.#answered === 'string' && { response_model: this.#answered }),
      ...(typeof this.#reason === 'string' && { finish_reasons: [this.#reason] }),
    });
  }

  /** The run failed, and with it the call that was under way. */
  failed(error: unknown): void {
    if (!this.#context.signal.aborted) this.#report({ error });
  }

  /** A chunk of one of OpenAI's two interfaces. */
  #readChunk(event: unknown): void {
    if (!isObject(event)) return;
    const { response, choices, model } = event;
    const first = Array.isArray(choices) && isObject(choices[0]) ? choices[0] : {};
    if (isObject(first.delta) && Array.isArray(first.delta.tool_calls)) this.#firstToken ??= Date.now();
    if (event.type === 'response.function_call_arguments.delta') this.#firstToken ??= Date.now();
    this.#answered = (isObject(response) ? response.model : model) ?? this.#answered;
    this.#reason = first.finish_reason ?? (isObject(response) ? response.status : undefined) ?? this.#reason;
  }

  #report(how: object): void {
    const call = this.#begun.shift();
    const [firstToken, answered] = [this.#firstToken, this.#answered];
    [this.#firstToken, this.#answered, this.#reason] = [undefined, undefined, undefined];
    if (call === undefined) return;
    const { agent, instructions, input, started } = call;
    const model = [agent.model, this.#model, answered].find((one) => typeof one === 'string' && one !== '');
    const system = instructions === undefined ? [] : [{ role: 'system', content: instructions }];
    this.#context.modelCall({
      model: String(model ?? 'unknown'),
      started,
      firstToken,
      input: modelMessages([...system, ...input]),
      tools: modelTools(agent.tools),
      ...how,
    });
  }
}
