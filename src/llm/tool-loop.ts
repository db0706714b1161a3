import { concat, concatMap, concatWith, defer, EMPTY, from, type Observable, of, switchMap, toArray } from 'rxjs';
import type { AgentContext, AgentFunction, AgentOutput } from '../core/agent.ts';
import { AgentError } from '../core/errors.ts';
import { cut, isObject, parsed } from '../core/json.ts';
import { trajectory } from '../core/parts.ts';
import { goOn } from '../core/said.ts';
import type { Message } from '../schema/message.ts';
import { assistantMessage, type ChatMessage, chatMessages } from './chat-messages.ts';
import { type ChatCall, type ChatEnd, type ChatModel, chatModel } from './chat-model.ts';
import type { Tool, ToolOutput } from './tool.ts';

export { type ChatMessage, chatMessages } from './chat-messages.ts';
export {
  type ChatCall,
  type ChatEnd,
  type ChatModel,
  type ChatModelOptions,
  type ChatRequest,
  chatModel,
} from './chat-model.ts';
export {
  type Tool,
  type ToolDefinition,
  type ToolFields,
  type ToolInput,
  type ToolOutput,
  tool,
  toolOf,
} from './tool.ts';

export interface ToolLoopOptions {
  /** The name of a model, or what `chatModel` returns. */
  readonly model: string | ChatModel;
  /** The system message. Default: none. */
  readonly instructions?: string | ((context: AgentContext) => string | Promise<string>);
  /** A function is asked before each answer of the model. Default: none. */
  readonly tools?: readonly Tool[] | ((context: AgentContext) => readonly Tool[] | Promise<readonly Tool[]>);
  /** Answers of the model in one run, after which the run fails with `llm_error`. Default 8. */
  readonly maxTurns?: number;
  /** What the model is told instead of the conversation. Default: `chatMessages` of the session's history and the input. */
  readonly messages?: (
    conversation: readonly Message[],
    context: AgentContext,
  ) => ChatMessage[] | Promise<ChatMessage[]>;
}

/** Characters of a tool's result that the model gets. */
const maxResult = 50_000;

/**
 * The function of an agent that asks a model, runs the tools which the model calls, and tells it their results, until it
 * answers without a call. Tokens stream, calls and approvals are shown. Usage is counted.
 * In a durable run each answer and each tool is a step: an answer that a crash cut off goes on from where it was.
 */
export function toolLoop({ model, messages = chatMessages, ...options }: ToolLoopOptions): AgentFunction {
  const ask = typeof model === 'string' ? chatModel({ model }) : model;
  return (input, context) =>
    context.session.history.pipe(
      concatWith(input),
      toArray(),
      switchMap(async (conversation) => messages(conversation, context)),
      switchMap((told) => new Loop(ask, options, context).turn(told)),
    );
}

/** One run of the agent. */
class Loop {
  readonly #model: ChatModel;
  readonly #options: Omit<ToolLoopOptions, 'model' | 'messages'>;
  readonly #context: AgentContext;
  #turns = 0;
  #tools: readonly Tool[] = [];

  constructor(model: ChatModel, options: Omit<ToolLoopOptions, 'model' | 'messages'>, context: AgentContext) {
    this.#model = model;
    this.#options = options;
    this.#context = context;
  }

  /** An answer of the model. Where it calls tools, their results, and then its next answer. */
  turn(messages: readonly ChatMessage[]): Observable<AgentOutput> {
    const { maxTurns = 8 } = this.#options;
    const context = this.#context;
    this.#turns += 1;
    let content = '';
    let calls: readonly ChatCall[] = [];
    const answer = context
      .step<string | ChatEnd>(
        'answer',
        () => this.#ask(messages),
        (before) =>
          before.some((one) => typeof one !== 'string') ? EMPTY : this.#ask([...messages, ...continuation(before)]),
      )
      .pipe(
        concatMap((one): AgentOutput[] => {
          if (typeof one === 'string') {
            content += one;
            return [one];
          }
          calls = one.calls;
          if (one.usage !== undefined) context.usage(one.usage);
          return one.cutOff === undefined ? [] : [{ role: 'agent', parts: [], finish_reason: one.cutOff }];
        }),
      );
    const next = defer(() => {
      if (calls.length === 0) return EMPTY;
      if (this.#turns >= maxTurns)
        throw new AgentError('llm_error', `The model asked for tools ${maxTurns} times and gave no answer.`);
      const results: ChatMessage[] = [];
      const called = from(calls).pipe(
        concatMap((call) => this.#call(call, (result) => void results.push(toolMessage(call, result)))),
      );
      const said = assistantMessage(content, calls);
      return concat(
        called,
        defer(() => this.turn([...messages, said, ...results])),
      );
    });
    return concat(answer, next);
  }

  #ask(messages: readonly ChatMessage[]): Observable<string | ChatEnd> {
    const { instructions = '' } = this.#options;
    const context = this.#context;
    const prepare = async () => ({
      system: typeof instructions === 'string' ? instructions : await instructions(context),
      offered: await this.#offered(),
    });
    return defer(prepare).pipe(
      switchMap(({ system, offered }) => {
        this.#tools = offered;
        const told: ChatMessage[] = system === '' ? [...messages] : [{ role: 'system', content: system }, ...messages];
        return this.#model({ messages: told, tools: offered.map(described) }, context);
      }),
    );
  }

  /** Runs a tool that the model has called; `tell` gets its result. */
  #call({ name, args }: ChatCall, tell: (result: string) => void): Observable<AgentOutput> {
    return defer(() => this.#found(name)).pipe(
      switchMap((tool) => {
        const input = parsed(args === '' ? '{}' : args);
        if (tool === undefined) return refused(name, input, `There is no tool ${name}.`);
        if (!isObject(input)) return refused(name, { arguments: input }, 'The arguments are not a JSON object.');
        return tool.call(input, this.#context);
      }),
      concatMap((said) => {
        if ('output' in said) return of(said.output);
        tell(cut(said.result, maxResult));
        return EMPTY;
      }),
    );
  }

  /** In a run that is entered again, the model's answer comes from the journal, and the tools have not been asked for. */
  async #found(name: string): Promise<Tool | undefined> {
    if (this.#tools.length === 0) this.#tools = await this.#offered();
    return this.#tools.find((tool) => tool.name === name);
  }

  async #offered(): Promise<readonly Tool[]> {
    const { tools = [] } = this.#options;
    return typeof tools === 'function' ? tools(this.#context) : tools;
  }
}

const described = ({ name, description, input }: Tool) => ({
  type: 'function' as const,
  function: { name, description, parameters: { ...input } },
});

const toolMessage = ({ id }: ChatCall, content: string): ChatMessage => ({ role: 'tool', tool_call_id: id, content });

/** A call that no tool takes. */
const refused = (tool_name: string, input: unknown, tool_error: string): Observable<ToolOutput> =>
  of(
    { output: trajectory({ tool_name, tool_input: isObject(input) ? input : { arguments: input }, tool_error }) },
    { result: `Error: ${tool_error}` },
  );

/** Messages that let the model continue an answer that was cut off. */
function continuation(before: readonly (string | ChatEnd)[]): ChatMessage[] {
  const content = before.filter((one) => typeof one === 'string').join('');
  if (content === '') return [];
  return [
    { role: 'assistant', content },
    { role: 'user', content: goOn },
  ];
}
