import { cutOffOf, isInterrupted } from '../../core/cut-off.ts';
import { RivuletError } from '../../core/errors.ts';
import { isObject } from '../../core/json.ts';
import { isJsonType } from '../../core/media-types.ts';
import { checkAgainst } from '../../engine/agents/json-schema.ts';
import type { ErrorBody } from '../../schema/error.ts';
import type { CitationMetadata, MessagePart } from '../../schema/message.ts';
import type { Run } from '../../schema/run.ts';
import { type FilePart, jsonIn, kindOf, type PartKind } from '../part-kinds.ts';
import { cancelledText, failureOf } from '../run-errors.ts';

// The result of a call: the whole output of its run.

type Schema = Readonly<Record<string, unknown>>;

/** A result that tells of a failure: the model reads it, and may call the tool in another way. */
export const failedResult = (text: string, run_id: string): object => ({
  content: [{ type: 'text', text }],
  isError: true,
  _meta: { 'rivulet/run_id': run_id },
});

const errorText = ({ message, data }: ErrorBody): string =>
  typeof data?.code === 'string' ? `${message} (${data.code})` : message;

/** The result of a final run. */
export function endedResult(run: Run, schema: Schema | undefined): object {
  if (run.status === 'completed') return completedResult(run, schema);
  const text = run.status === 'cancelled' ? cancelledText(run.cancel_reason) : errorText(failureOf(run));
  return failedResult(text, run.run_id);
}

/** The result of a completed run, for a model: without interrupted messages. With a schema, its data has to fit, because clients refuse an answer that does not. */
function completedResult(run: Run, schema: Schema | undefined): object {
  const output = new Output(run.run_id);
  for (const message of run.output) if (!isInterrupted(message)) output.message(message.parts);
  const { content, citations, data } = output;
  const problem = schema === undefined ? undefined : problemOf(data, schema);
  if (problem !== undefined) return failedResult(problem, run.run_id);
  const cutOff = cutOffOf(run.output.at(-1) ?? {});
  return {
    content,
    structuredContent: data,
    isError: false,
    _meta: {
      'rivulet/run_id': run.run_id,
      ...(citations.length > 0 && { 'rivulet/citations': citations }),
      ...(cutOff !== undefined && { 'rivulet/finish_reason': cutOff }),
    },
  };
}

function problemOf(value: unknown, schema: Schema): string | undefined {
  if (value === undefined)
    return 'The agent has to end with an object as JSON, which its output_schema states; it has none.';
  try {
    checkAgainst(schema, { path: 'output', value, chars: 0 });
    return undefined;
  } catch (error) {
    if (!(error instanceof RivuletError)) throw error;
    // The run is over, and clients check the data themselves: not to have it would be worse.
    if (error.kind === 'too_busy') return undefined;
    return `The output of the agent does not fit its output_schema: ${error.message}`;
  }
}

class Output {
  readonly #run_id: string;
  readonly content: object[] = [];
  readonly citations: Omit<CitationMetadata, 'kind'>[] = [];
  /** The last object that the agent has emitted as JSON. */
  data: Record<string, unknown> | undefined;
  #text = '';

  constructor(run_id: string) {
    this.#run_id = run_id;
  }

  message(parts: readonly MessagePart[]): void {
    for (const part of parts) this.#part(kindOf(part));
    this.#endText();
  }

  #part(part: PartKind): void {
    switch (part.kind) {
      case 'text':
        this.#text += part.text;
        return;
      case 'citation': {
        const { kind: _, ...citation } = part.citation;
        this.#text += part.text;
        this.citations.push(citation);
        return;
      }
      case 'file':
        this.#endText();
        this.content.push(this.#file(part));
        return;
      case 'data':
        this.#endText();
        this.#data(part.part);
        return;
      case 'tool':
      case 'reasoning':
        // Steps of the agent are progress.
        return;
      default:
        part satisfies never;
    }
  }

  #endText(): void {
    if (this.#text !== '') this.content.push({ type: 'text', text: this.#text });
    this.#text = '';
  }

  #data(part: MessagePart): void {
    const { content = '' } = part;
    this.content.push({ type: 'text', text: content });
    const value = isJsonType(part) ? jsonIn(content)?.value : undefined;
    if (isObject(value)) this.data = value;
  }

  #file({ url, base64, mediaType, name }: FilePart): object {
    const [mimeType = mediaType] = mediaType.split(';', 1);
    if (base64 === undefined) return { type: 'resource_link', uri: url, name: name ?? url, mimeType };
    if (/^image\//i.test(mimeType)) return { type: 'image', data: base64, mimeType };
    if (/^audio\//i.test(mimeType)) return { type: 'audio', data: base64, mimeType };
    const uri = `rivulet://runs/${this.#run_id}/${encodeURIComponent(name ?? `file-${this.content.length + 1}`)}`;
    const isText = /^text\/|^application\/([\w.-]+\+)?(json|xml)$/i.test(mimeType);
    const body = isText ? { text: Buffer.from(base64, 'base64').toString() } : { blob: base64 };
    return { type: 'resource', resource: { uri, mimeType, ...body } };
  }
}
