import { reasonOf } from '../client/client-error.ts';
import { answerText } from '../client/operators.ts';
import { isSettled } from '../core/run-state.ts';
import type { Event } from '../schema/event.ts';
import type { CitationMetadata, MessagePart, TrajectoryMetadata } from '../schema/message.ts';
import type { Run } from '../schema/run.ts';
import { type ArtifactFolder, isArtifact, saveArtifact } from './artifacts.ts';
import { oneLine } from './sanitize.ts';
import type { Terminal } from './terminal.ts';

/** Prints a run for people: the answer as it arrives, steps dimmed, citations as footnotes, artifacts by name. */
export class Transcript {
  readonly #terminal: Terminal;
  readonly #folder: ArtifactFolder | undefined;
  #hasText = false;
  /** The text of the current message; citations refer to positions in it. */
  #text = '';
  #citations: CitationMetadata[] = [];

  /** Artifacts are saved in the folder, if there is one. */
  constructor(terminal: Terminal, folder?: ArtifactFolder) {
    this.#terminal = terminal;
    this.#folder = folder;
  }

  show(event: Event): void {
    if ('run' in event) {
      if (isSettled(event.run.status)) this.#end(event.run);
    } else if ('part' in event) this.#part(event.part);
    else if ('message' in event) this.#message(event.type === 'message.created');
    else if ('generic' in event) this.#terminal.note(oneLine(`event ${JSON.stringify(event.generic)}`));
    else if ('error' in event) this.#terminal.note(`${event.error.message} (${reasonOf(event.error)})`, 'red');
  }

  #message(isNew: boolean): void {
    if (isNew) this.#text = '';
    else this.#footnotes();
  }

  #part(part: MessagePart): void {
    const { metadata } = part;
    const text = answerText(part);
    if (text !== '') this.#printText(text);
    if (metadata?.kind === 'trajectory') this.#terminal.note(oneLine(stepOf(metadata)));
    else if (metadata?.kind === 'citation') {
      this.#citations.push(metadata);
      this.#terminal.mark(`[${this.#citations.length}]`);
    } else if (isArtifact(part)) this.#terminal.note(saveArtifact(part, this.#folder), 'cyan');
  }

  #printText(text: string): void {
    // A blank line between messages, as in the client's text().
    if (this.#text === '' && this.#hasText) {
      this.#terminal.endLine();
      this.#terminal.answer('\n');
    }
    this.#hasText = true;
    this.#text += text;
    this.#terminal.answer(text);
  }

  #footnotes(): void {
    for (const [index, { title, url, description, start_index, end_index }] of this.#citations.entries()) {
      const cited = end_index === undefined ? undefined : this.#text.slice(start_index ?? 0, end_index);
      const quoted = description ?? cited;
      const source = [title, url, quoted && `“${quoted.trim()}”`].filter(Boolean).join(', ');
      this.#terminal.note(oneLine(`[${index + 1}] ${source}`));
    }
    this.#citations = [];
  }

  #end({ status, error }: Run): void {
    this.#footnotes();
    this.#terminal.endLine();
    if (status === 'failed') {
      const reason = error === undefined ? 'no reason was given' : `${error.message} (${reasonOf(error)})`;
      this.#terminal.note(`The run failed: ${reason}`, 'red');
    }
    if (status === 'cancelled') this.#terminal.note('The run was cancelled.', 'yellow');
  }
}

const stepOf = ({ message, tool_name, tool_input, tool_output }: TrajectoryMetadata): string =>
  [
    message,
    tool_name && `${tool_name} ${tool_input ? JSON.stringify(tool_input) : ''}`.trim(),
    tool_output && `→ ${JSON.stringify(tool_output)}`,
  ]
    .filter(Boolean)
    .join(' ') || 'a step';
