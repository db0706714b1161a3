import type { ModelMessage, ModelTool } from '../schema/diagnostic.ts';

/** A call of a model that has ended, as an agent reports it. Times are milliseconds since 1970, as `Date.now()` has them. */
export interface ModelCallReport {
  /** The model that was asked for. */
  readonly model: string;
  /** Whose server it was, such as `openai`. */
  readonly provider?: string | undefined;
  readonly started: number;
  /** When the first token came. */
  readonly firstToken?: number | undefined;
  /** Default: now. */
  readonly ended?: number | undefined;
  /** What the model was given: kept where the server captures content. */
  readonly input?: readonly ModelMessage[] | undefined;
  readonly tools?: readonly ModelTool[] | undefined;
  /** What the model answered, kept likewise. */
  readonly output?: readonly ModelMessage[] | undefined;
  readonly input_tokens?: number | undefined;
  readonly output_tokens?: number | undefined;
  readonly response_id?: string | undefined;
  /** The model that answered. */
  readonly response_model?: string | undefined;
  readonly finish_reasons?: readonly string[] | undefined;
  /** Why the call failed. */
  readonly error?: unknown;
}
