import type { CallModelInputFilter, RunStreamEvent } from '@openai/agents';
import type { AgentContext } from '../core/agent.ts';
import { isObject } from '../core/json.ts';
import { modelMessages, modelTools } from '../core/model-messages.ts';
import { usageOf } from './conversation.ts';

type ModelEvent = Extract<RunStreamEvent, { type: 'raw_model_stream_event' }>['data'];

/** A call of a model that has begun. */
interface Asked {
  readonly agent: Parameters<CallModelInputFilter>[0]['agent'];
  readonly instructions: string | undefined;
  readonly input: readonly unknown[];
  readonly started: number;
}

/** Reports the calls of a model that one run of the SDK makes. */
export class ModelCalls {
  readonly #context: AgentContext;
  /** The model of agents that name none. */
  readonly #model: unknown;
  /** The SDK may be a call ahead of the reader of its stream. */
  readonly #asked: Asked[] = [];
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
      this.#asked.push({ agent: call.agent, instructions, input, started: Date.now() });
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
    const asked = this.#asked.shift();
    const [firstToken, answered] = [this.#firstToken, this.#answered];
    [this.#firstToken, this.#answered, this.#reason] = [undefined, undefined, undefined];
    if (asked === undefined) return;
    const { agent, instructions, input, started } = asked;
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
