import type { Static, TObject } from '@sinclair/typebox';
import { catchError, concat, concatMap, defer, from, type Observable, type ObservableInput, of, switchMap } from 'rxjs';
import type { AgentContext, AgentOutput } from '../core/agent.ts';
import { type Approval, askApproval, notAllowed } from '../core/approval.ts';
import { errorOf } from '../core/errors.ts';
import { textOf, trajectory } from '../core/parts.ts';
import { compile } from '../core/validate.ts';

/** An object that JSON can express. */
export type ToolInput = Readonly<Record<string, unknown>>;

export interface ToolFields {
  /** Letters, digits, `_` and `-`: models know it by this name. */
  readonly name: string;
  readonly description: string;
}

/** A tool that a model may call. Its errors are results: the model may correct itself. */
export interface Tool extends ToolFields {
  /** The JSON Schema of its input. */
  readonly input: object;
  /** What a call shows, and at last its result for the model. */
  call(input: ToolInput, context: AgentContext): Observable<ToolOutput>;
}

/** A part of the run's output, or the result of a call for the model. */
export type ToolOutput = { readonly output: AgentOutput } | { readonly result: string };

/** A tool whose work returns a value. */
export interface ToolDefinition<S extends TObject> extends ToolFields {
  readonly input: S;
  /** Ask a person before each call, or before those with such an input. Default false. */
  readonly approval?: boolean | ((input: Static<S>) => boolean);
  /**
   * Whether a call that a crash cut off is made once more. Otherwise the model is told that its outcome is unknown. Default
   * false: a payment may have been made.
   */
  readonly repeatable?: boolean;
  /** A step of a durable run. What is no text, the model gets as JSON. */
  readonly run: (input: Static<S>, context: AgentContext) => unknown;
}

/** A tool whose input is checked, and whose work returns a value. */
export function tool<S extends TObject>({
  run,
  approval = false,
  repeatable = false,
  ...fields
}: ToolDefinition<S>): Tool {
  const check = compile(fields.input, 'arguments');
  const asks = typeof approval === 'function' ? approval : () => approval;
  const fits = (given: ToolInput): boolean => {
    try {
      check(given);
      return true;
    } catch {
      return false;
    }
  };
  async function* call(given: ToolInput, context: AgentContext): AsyncGenerator<ToolOutput> {
    try {
      const work = (): unknown => run(check(given), context);
      const isAsked = fits(given) && asks(check(given));
      const shown = context.tool(fields.name, given, work, { approval: isAsked, repeatable });
      let next = await shown.next();
      for (; next.done !== true; next = await shown.next()) yield { output: next.value };
      yield { result: asText(next.value) };
    } catch (error) {
      yield { result: `Error: ${errorOf(error).message}` };
    }
  }
  return { ...fields, call: (input, context) => from(call(input, context)) };
}

/**
 * A tool with an output of its own, such as a tool of an MCP server or another agent. Its steps and events are shown. Its texts
 * are the result for the model. With `approval`, a person is asked before each call.
 */
export function toolOf(
  { approval = false, ...fields }: ToolFields & { readonly input: object; readonly approval?: boolean },
  begin: (input: ToolInput, context: AgentContext) => ObservableInput<AgentOutput>,
): Tool {
  const call = (input: ToolInput, context: AgentContext): Observable<ToolOutput> => {
    let text = '';
    const allowed: Observable<Approval> = approval ? askApproval(context, fields.name, input) : of({ approved: true });
    const shown = allowed.pipe(
      switchMap(({ approved, reason }) => {
        if (approved) return begin(input, context);
        text = `Error: ${reason ?? notAllowed}`;
        const tool_output = { denied: true, ...(reason !== undefined && { reason }) };
        return of(trajectory({ tool_name: fields.name, tool_input: { ...input }, tool_output }));
      }),
      concatMap((output): ToolOutput[] => {
        if (typeof output === 'object' && ('generic' in output || 'metadata' in output)) return [{ output }];
        text += typeof output === 'string' ? output : `${textOf(output)}\n`;
        return [];
      }),
    );
    return concat(
      shown,
      defer(() => of({ result: text })),
    ).pipe(catchError((error) => of({ result: `Error: ${errorOf(error).message}` })));
  };
  return { ...fields, call };
}

const asText = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? 'null'));
