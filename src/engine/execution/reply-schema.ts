import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { fail } from '../../core/errors.ts';
import { receiveMessage } from '../../core/messages.ts';
import type { Message } from '../../schema/message.ts';
import type { AwaitRequest, AwaitResume, AwaitResumeInput } from '../../schema/run.ts';

/** Checks replies against what was asked; schemas come from agents, and each is compiled once. */
export class Replies {
  readonly #ajv = new Ajv({ strict: false, allErrors: false });
  readonly #compiled = new Map<string, ValidateFunction>();

  /**
   * A client's reply as the agent gets it.
   * @throws RivuletError `other_await`, `misfit` that names the path
   */
  receive(request: AwaitRequest, input: AwaitResumeInput, now: string): AwaitResume {
    const { type = 'message' } = input;
    if (type !== request.type) throw fail('other_await', request.type, type);
    if (input.message === undefined) throw fail('misfit', 'await_resume.message', 'is required');
    const message = receiveMessage(input.message, 'await_resume.message', now);
    if (request.schema !== undefined) this.#check(request.schema, message);
    return { ...input, type: request.type, message };
  }

  #check(schema: Record<string, unknown>, message: Message): void {
    const key = JSON.stringify(schema);
    let validate = this.#compiled.get(key);
    if (validate === undefined) {
      // Bounded: an agent that makes a schema for each run would fill the memory.
      if (this.#compiled.size >= 100) this.#compiled.clear();
      validate = this.#ajv.compile(schema);
      this.#compiled.set(key, validate);
    }
    const { path, value } = answered(message);
    if (!validate(value))
      throw fail('misfit', `${path}${validate.errors?.[0]?.instancePath ?? ''}`, problem(validate.errors?.[0]));
  }
}

/** What a schema speaks of: the reply's JSON part, or else all of its text, as JSON where it is that. */
function answered({ parts }: Message): { path: string; value: unknown } {
  const index = parts.findIndex(({ content_type }) => /^application\/([\w.-]+\+)?json\b/i.test(content_type ?? ''));
  const path = index < 0 ? 'await_resume.message.parts' : `await_resume.message.parts[${index}].content`;
  const text = index < 0 ? parts.map(({ content }) => content ?? '').join('') : (parts[index]?.content ?? '');
  try {
    return { path, value: JSON.parse(text) };
  } catch {
    return { path, value: text };
  }
}

const problem = (error: ErrorObject | undefined): string =>
  error?.message ?? 'does not fit the schema that was asked for';
