import { textOf } from '../client/operators.ts';
import { isSettled } from '../core/status.ts';
import type { ErrorBody } from '../schema/error.ts';
import type { Event } from '../schema/event.ts';
import type { CitationMetadata, MessagePart, TrajectoryMetadata } from '../schema/message.ts';
import type { Run } from '../schema/run.ts';
import { bytesOf, saveArtifact } from './artifacts.ts';
import type { Screen } from './screen.ts';

/** A run as a person reads it: the answer as it comes, steps dim, citations as footnotes, artifacts by name. */
export class Transcript {
  readonly #screen: Screen;
  readonly #folder: string | undefined;
  #said = false;
  /** The text of the message so far, which citations point into. */
  #text = '';
  #citations: CitationMetadata[] = [];

  /** With a folder, artifacts are saved there. */
  constructor(screen: Screen, folder?: string) {
    this.#screen = screen;
    this.#folder = folder;
  }

  show(event: Event): void {
    if ('run' in event) {
      if (isSettled(event.run.status)) this.#end(event.run);
    } else if ('part' in event) this.#part(event.part);
    else if ('message' in event) this.#message(event.type === 'message.created');
    else if ('generic' in event) this.#screen.note(cut(`event ${JSON.stringify(event.generic)}`));
    else this.#screen.note(`${event.error.message} (${kindOf(event.error)})`, 'red');
  }

  #message(begins: boolean): void {
    if (begins) this.#text = '';
    else this.#footnotes();
  }

  #part(part: MessagePart): void {
    const { metadata } = part;
    const text = textOf(part);
    if (text !== '') this.#say(text);
    if (metadata?.kind === 'trajectory') this.#screen.note(cut(stepOf(metadata)));
    else if (metadata?.kind === 'citation') {
      this.#citations.push(metadata);
      this.#screen.mark(`[${this.#citations.length}]`);
    } else if (text === '' && isData(part)) this.#artifact(part);
  }

  #say(text: string): void {
    // A blank line between messages, as the client's text() has it.
    if (this.#text === '' && this.#said) {
      this.#screen.endLine();
      this.#screen.answer('\n');
    }
    this.#said = true;
    this.#text += text;
    this.#screen.answer(text);
  }

  #artifact(part: MessagePart): void {
    const { name = 'data', content_type = 'text/plain', content_url } = part;
    const what = `${name} (${content_type}, ${content_url ?? `${bytesOf(part).length} bytes`})`;
    const saved = this.#folder !== undefined && content_url === undefined;
    this.#screen.note(saved ? `${what} saved as ${saveArtifact(this.#folder, part)}` : what, 'cyan');
  }

  #footnotes(): void {
    for (const [index, { title, url, description, start_index, end_index }] of this.#citations.entries()) {
      const cited = end_index === undefined ? undefined : this.#text.slice(start_index ?? 0, end_index);
      const quoted = description ?? cited;
      const source = [title, url, quoted && `“${quoted.trim()}”`].filter(Boolean).join(', ');
      this.#screen.note(cut(`[${index + 1}] ${source}`));
    }
    this.#citations = [];
  }

  #end({ status, error }: Run): void {
    this.#footnotes();
    this.#screen.endLine();
    if (status === 'failed') {
      const why = error === undefined ? 'no reason given' : `${error.message} (${kindOf(error)})`;
      this.#screen.note(`The run failed: ${why}`, 'red');
    }
    if (status === 'cancelled') this.#screen.note('The run was cancelled.', 'yellow');
  }
}

/** An agent's own code, or the server's reason, where there is one: they say more than the protocol's three codes. */
const kindOf = ({ code, data }: ErrorBody): string => String(data?.code ?? data?.reason ?? code);

const isData = ({ name, content, content_url }: MessagePart): boolean =>
  name !== undefined || content_url !== undefined || (content ?? '') !== '';

const stepOf = ({ message, tool_name, tool_input, tool_output }: TrajectoryMetadata): string =>
  [
    message,
    tool_name && `${tool_name} ${tool_input ? JSON.stringify(tool_input) : ''}`.trim(),
    tool_output && `→ ${JSON.stringify(tool_output)}`,
  ]
    .filter(Boolean)
    .join(' ') || 'a step';

/** One line that fits: what is longer is not for reading on the way. */
const cut = (text: string): string => {
  const line = text.replace(/\s+/g, ' ');
  return line.length > 300 ? `${line.slice(0, 299)}…` : line;
};
