import { signal } from '@preact/signals';
import { newKey } from '../../client/calls.ts';
import type { MessagePart } from '../../client/client.ts';
import { artifact } from '../../core/parts.ts';
import { formatBytes } from '../elements/format.ts';
import { bytesOf } from './artifact.tsx';
import { contentOf } from './content.ts';

/** Bytes of all files together. Base64 adds a third, and the server accepts 10 MiB. */
const maxBytes = 7_000_000;
/** Characters of the title of a session. */
const maxTitle = 60;

/** The next message to an agent: what the user has typed and attached. */
export class Draft {
  readonly text = signal('');
  readonly files = signal<readonly File[]>([]);
  /** Why the last files were not attached. */
  readonly problem = signal<string | undefined>(undefined);
  #key = newKey();

  /** Idempotency key: sending the draft again after a lost connection creates no second run. */
  get key(): string {
    return this.#key;
  }

  get empty(): boolean {
    return this.text.value.trim() === '' && this.files.value.length === 0;
  }

  write(text: string): void {
    this.#change(text, this.files.peek());
  }

  attach(added: readonly File[]): void {
    const all = [...this.files.peek(), ...added];
    const fits = all.reduce((sum, { size }) => sum + size, 0) <= maxBytes;
    if (fits) this.#change(this.text.peek(), all);
    else this.problem.value = `The files may have at most ${formatBytes(maxBytes)} together.`;
  }

  remove(file: File): void {
    this.#change(
      this.text.peek(),
      this.files.peek().filter((other) => other !== file),
    );
  }

  /** Takes the parts of an earlier message, to be edited. */
  fill(parts: readonly MessagePart[]): void {
    const { text, artifacts } = contentOf(parts);
    this.#change(text, artifacts.map(toFile));
  }

  clear(): void {
    this.#change('', []);
  }

  async parts(): Promise<MessagePart[]> {
    const [text, files] = [this.text.peek(), this.files.peek()];
    const attached = await Promise.all(files.map(toPart));
    return text.trim() === '' ? attached : [{ content_type: 'text/plain', content: text }, ...attached];
  }

  #change(text: string, files: readonly File[]): void {
    this.text.value = text;
    this.files.value = files;
    this.problem.value = undefined;
    this.#key = newKey();
  }
}

/** A file as a part, with its name and type: UTF-8 as text, other bytes in base64. */
const toPart = async (given: File): Promise<MessagePart> =>
  artifact(given.name, new Uint8Array(await given.arrayBuffer()), given.type || undefined);

const toFile = (part: MessagePart): File =>
  new File([bytesOf(part)], part.name ?? 'file', part.content_type === undefined ? {} : { type: part.content_type });

/** The title of the session that a message begins. */
export function titleOf(parts: readonly MessagePart[]): string {
  const { text, artifacts } = contentOf(parts);
  return text.trim().slice(0, maxTitle) || artifacts.map(({ name }) => name ?? 'file').join(', ');
}
