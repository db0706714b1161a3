import type { Reply } from '../../client/input.ts';
import { textOf } from '../../core/parts.ts';
import { findProblems, formatOf, readValue } from '../../forms/reply-check.ts';
import {
  asksYesOrNo,
  type Choice,
  choicesOf,
  type Field,
  fieldKind,
  fieldsOf,
  parseValue,
  pointerTo,
  type ReplySchema,
  replyPart,
} from '../../forms/reply-form.ts';
import type { AwaitRequest } from '../../schema/run.ts';
import { UsageError } from '../exit-codes.ts';
import { oneLine, sanitizedJson } from './format.ts';
import type { ReadLine } from './terminal.ts';

/** The terminal, as a prompt uses it. */
export interface PromptTerminal {
  readonly readLine: ReadLine;
  readonly note: (text: string, style?: 'red') => void;
}

/** The value of each field, by its path. After a refusal they are defaults, so that only the wrong field is typed again. */
export type FieldValues = Map<string, unknown>;

/** The terminal was closed, or the prompt was aborted. */
class PromptEnded extends Error {}

const omitted = Symbol('omitted');

/**
 * Prompts for the reply to an await request: text, or the value of its schema; an object is prompted field by field. A
 * value that does not fit is asked for again at once. Undefined if the terminal is closed or the prompt is aborted.
 */
export async function promptReply(
  { message, schema }: AwaitRequest,
  terminal: PromptTerminal,
  values: FieldValues,
): Promise<Reply | undefined> {
  const prompt = new FieldPrompt(terminal, values);
  try {
    if (schema === undefined) return await prompt.text(asksYesOrNo(textOf(message)));
    const value = await prompt.value({ name: '', schema, required: true }, '');
    return replyPart(schema, value);
  } catch (error) {
    if (error instanceof PromptEnded) return undefined;
    throw error;
  }
}

class FieldPrompt {
  readonly #terminal: PromptTerminal;
  readonly #values: FieldValues;

  constructor(terminal: PromptTerminal, values: FieldValues) {
    this.#terminal = terminal;
    this.#values = values;
  }

  /** A text. Where yes or no would do, `y` and `n` stand for them, and any other text is a reply as well. */
  async text(yesOrNo: boolean): Promise<string> {
    for (;;) {
      const line = (await this.#line(yesOrNo ? '(yes | no) > ' : '> ')).trim();
      if (yesOrNo && /^[yn]$/i.test(line)) return /y/i.test(line) ? 'yes' : 'no';
      if (line !== '') return line;
      this.#problem('Type a reply. Ctrl-D leaves the run waiting.');
    }
  }

  async value(field: Field, path: string): Promise<unknown> {
    if (fieldKind(field.schema) !== 'object') return this.#single(field, path);
    if (!field.required && !(await this.#confirm(field, path))) return omitted;
    const object: Record<string, unknown> = {};
    for (const inner of fieldsOf(field.schema)) {
      const value = await this.value(inner, pointerTo(path, inner.name));
      if (value !== omitted) object[inner.name] = value;
    }
    return object;
  }

  /** Whether an optional object is filled in. */
  async #confirm({ schema }: Field, path: string): Promise<boolean> {
    for (;;) {
      const line = (await this.#line(`${labelOf(schema, path)}: fill it in? (yes | no) [no] > `)).trim();
      if (/^(n|no)?$/i.test(line)) return false;
      if (/^(y|yes)$/i.test(line)) return true;
      this.#problem('Type yes or no.');
    }
  }

  async #single({ schema, required }: Field, path: string): Promise<unknown> {
    const kind = fieldKind(schema);
    const choices = choicesOf(kind === 'choices' ? (schema.items ?? {}) : schema);
    const preset = this.#preset(schema, path);
    const words = [kind === 'choice' ? undefined : kind === 'choices' ? 'numbers, with commas' : formatOf(schema)];
    const details = [...words, required ? undefined : 'optional'].filter(Boolean).join(', ');
    const label = [labelOf(schema, path), details && `(${details})`, schema.description].filter(Boolean).join(' ');
    for (const [index, choice] of (choices ?? []).entries()) this.#terminal.note(`  ${index + 1}  ${choice.label}`);
    const prompt = `${[label, preset !== undefined && `[${preset.text}]`].filter(Boolean).join(' ')} > `;
    for (;;) {
      const typed = kind === 'list' ? await this.#lines(prompt) : (await this.#line(prompt)).trim();
      const value = typed.length > 0 ? read(typed, schema, choices) : preset === undefined ? omitted : preset.value;
      if (value === omitted && !required) return omitted;
      const empty = kind === 'choices' || kind === 'list' ? [] : undefined;
      const given = value === omitted ? empty : value;
      const [problem] = findProblems(schema, given);
      if (problem === undefined) {
        this.#values.set(path, given);
        return given;
      }
      this.#problem(`${labelOf(schema, path)} ${problem.text}`);
    }
  }

  /** The value that Enter takes: the one that was typed before, or a default that fits. */
  #preset(schema: ReplySchema, path: string): { value: unknown; text: string } | undefined {
    const value = this.#values.has(path) ? this.#values.get(path) : schema.default;
    if (value === undefined || findProblems(schema, value).length > 0) return undefined;
    const choice = choicesOf(schema)?.find((one) => JSON.stringify(one.value) === JSON.stringify(value));
    return { value, text: choice?.label ?? toText(value) };
  }

  /** One item a line, up to an empty line. */
  async #lines(prompt: string): Promise<string[]> {
    const lines: string[] = [];
    for (
      let line = await this.#line(`${prompt.slice(0, -2)}one a line > `);
      line.trim() !== '';
      line = await this.#line('> ')
    ) {
      lines.push(line.trim());
    }
    return lines;
  }

  async #line(prompt: string): Promise<string> {
    const line = await this.#terminal.readLine(prompt);
    if (line === undefined) throw new PromptEnded();
    return line;
  }

  #problem(text: string): void {
    this.#terminal.note(text, 'red');
  }
}

/** The name of a field for a person: its title, or else its path, such as `passenger.name`. */
export const labelOf = ({ title }: ReplySchema, path: string): string =>
  typeof title === 'string' ? title : path.slice(1).split('/').map(nameIn).join('.') || 'Your answer';

/** The name of a property, of which `pointerTo` has made a segment. */
const nameIn = (segment: string): string => segment.replaceAll('~1', '/').replaceAll('~0', '~');

/** What was typed as a value. Text that is no value stays a text, for which the schema has a problem. */
function read(typed: string | readonly string[], schema: ReplySchema, choices: readonly Choice[] | undefined): unknown {
  if (typeof typed !== 'string') return typed;
  if (choices === undefined) return readValue(typed, schema);
  const chosen = (word: string): unknown => {
    // A label first: it may be a number itself.
    const choice =
      choices.find(({ label }) => label === word) ??
      choices.find(({ label }) => label.toLowerCase() === word.toLowerCase());
    const found = choice ?? (/^\d+$/.test(word) ? choices[Number(word) - 1] : undefined);
    return found === undefined ? word : found.value;
  };
  if (fieldKind(schema) === 'choice') return chosen(typed);
  return typed
    .split(',')
    .map((word) => word.trim())
    .filter(Boolean)
    .map(chosen);
}

const toText = (value: unknown): string =>
  Array.isArray(value) ? value.map(toText).join(', ') : typeof value === 'string' ? value : JSON.stringify(value);

/** What a question expects, in lines: each field with how it is written, and the schema. Empty for free text. */
export function expectedReply({ schema }: AwaitRequest): string[] {
  if (schema === undefined) return [];
  const fields = fieldKind(schema) === 'object' ? fieldLines(schema) : [`  ${formatOf(schema) ?? 'text'}`];
  return [...fields, `JSON Schema: ${sanitizedJson(schema)}`];
}

function fieldLines(schema: ReplySchema, indent = '  '): string[] {
  return fieldsOf(schema).flatMap(({ name, schema: inner, required }) => {
    const words = [formatOf(inner), required ? 'required' : 'optional', inner.title, inner.description];
    const isObject = fieldKind(inner) === 'object';
    const line = oneLine(`${name}: ${words.filter((word) => typeof word === 'string').join(', ')}`);
    return [`${indent}${line}`, ...(isObject ? fieldLines(inner, `${indent}  `) : [])];
  });
}

/**
 * The reply that a text of the command line means. Without a schema it is the text.
 * @throws UsageError that says what is expected
 */
export function replyOf(request: AwaitRequest, text: string): Reply {
  const { schema } = request;
  if (schema === undefined) return text;
  const value = fieldKind(schema) === 'object' ? parseValue(text, {}) : readValue(text.trim(), schema);
  const problems =
    typeof value === 'string' && fieldKind(schema) === 'object' ? [notJson] : findProblems(schema, value);
  if (problems.length === 0) return replyPart(schema, value);
  const list = problems.map(({ path, text: problem }) => `${path.slice(1) || 'the reply'} ${problem}`);
  throw new UsageError([`the question expects another reply: ${list.join(' ')}`, ...expectedReply(request)].join('\n'));
}

const notJson = { path: '', text: 'must be a JSON object.' };
