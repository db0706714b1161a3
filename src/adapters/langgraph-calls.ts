import type { AgentContext } from '../core/agent.ts';
import { isObject } from '../core/json.ts';
import { modelMessages, modelTools } from '../core/model-messages.ts';
import { type ModelAnswers, reasonOf } from './langgraph-messages.ts';

/** A call of a model that has begun. */
interface Call {
  readonly messages: readonly unknown[];
  /** What the provider was asked for: the model and its tools. */
  readonly params: Record<string, unknown>;
  readonly metadata: Record<string, unknown>;
  readonly started: number;
  firstToken?: number;
}

/** Reports the calls of models in a graph. */
export class ModelCalls {
  /** Callbacks of LangChain. The node waits for them. */
  readonly callbacks = {
    awaitHandlers: true,
    raiseError: true,
    handleChatModelStart: this.#begin.bind(this),
    handleLLMNewToken: this.#token.bind(this),
    handleLLMEnd: this.#end.bind(this),
    handleLLMError: this.#failed.bind(this),
  };
  readonly #context: AgentContext;
  readonly #answered: (answers: ModelAnswers) => void;
  readonly #calls = new Map<string, Call>();

  /** `answered` handles the end of each call, before its node goes on, and throws where the answer is not whole. */
  constructor(context: AgentContext, answered: (answers: ModelAnswers) => void) {
    this.#context = context;
    this.#answered = answered;
  }

  #begin(
    _model: unknown,
    messages: readonly (readonly unknown[])[],
    id: string,
    _parent?: string,
    extra: Record<string, unknown> = {},
    _tags?: readonly string[],
    metadata: Record<string, unknown> = {},
  ): void {
    const params = isObject(extra.invocation_params) ? extra.invocation_params : {};
    this.#calls.set(id, { messages: messages.flat(), params, metadata, started: Date.now() });
  }

  #token(_token: string, _index: unknown, id: string): void {
    const call = this.#calls.get(id);
    if (call !== undefined) call.firstToken ??= Date.now();
  }

  #end(answers: ModelAnswers, id: string): void {
    try {
      this.#answered(answers);
    } catch (error) {
      this.#report(id, { error });
      throw error;
    }
    const all = answers.generations.flat();
    const [first] = all;
    const { usage_metadata: usage, response_metadata: meta = {} } = first?.message ?? {};
    const info = first?.generationInfo ?? {};
    const answered = [meta.model_name, meta.model, info.model_name].find((one) => typeof one === 'string');
    const reason = reasonOf(first?.message, info);
    this.#report(id, {
      output: modelMessages(all.map(({ message }) => message)),
      input_tokens: usage?.input_tokens,
      output_tokens: usage?.output_tokens,
      ...(typeof first?.message?.id === 'string' && { response_id: first.message.id }),
      ...(answered !== undefined && { response_model: answered }),
      ...(typeof reason === 'string' && { finish_reasons: [reason] }),
    });
  }

  #failed(error: unknown, id: string): void {
    if (!this.#context.signal.aborted) this.#report(id, { error });
    this.#calls.delete(id);
  }

  #report(id: string, how: object): void {
    const call = this.#calls.get(id);
    if (call === undefined) return;
    this.#calls.delete(id);
    const { messages, params, metadata, started, firstToken } = call;
    const { ls_model_name, ls_provider } = metadata;
    const model = [params.model, params.model_name, ls_model_name].find((one) => typeof one === 'string');
    this.#context.modelCall({
      model: String(model ?? 'unknown'),
      ...(typeof ls_provider === 'string' && { provider: ls_provider }),
      started,
      firstToken,
      input: modelMessages(messages),
      tools: modelTools(Array.isArray(params.tools) ? params.tools : []),
      ...how,
    });
  }
}
