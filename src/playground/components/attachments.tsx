import { useRef } from 'preact/hooks';
import type { MessagePart } from '../../client/client.ts';
import { formatBytes } from '../format.ts';
import { Icon } from './icons.tsx';

/** `accept` lists content types, as an input has them; undefined accepts all. */
export function AttachButton({ accept, onPick }: { accept: string | undefined; onPick: (files: File[]) => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label="Files"
        accept={accept}
        onChange={({ currentTarget }) => {
          onPick([...(currentTarget.files ?? [])]);
          // Otherwise, picking the same file again would cause no event.
          currentTarget.value = '';
        }}
      />
      <button type="button" class="bare" aria-label="Attach files" onClick={() => input.current?.click()}>
        <Icon name="attach" />
      </button>
    </>
  );
}

/** The files of the next message. */
export function AttachmentList({ files, onRemove }: { files: readonly File[]; onRemove: (file: File) => void }) {
  if (files.length === 0) return null;
  return (
    <ul class="files">
      {files.map((file, index) => (
        <li key={`${index}`}>
          {file.name} <span>{formatBytes(file.size)}</span>
          <button type="button" class="bare" aria-label={`Remove ${file.name}`} onClick={() => onRemove(file)}>
            <Icon name="close" />
          </button>
        </li>
      ))}
    </ul>
  );
}

/** Reads a file as a part: its bytes in base64, with its name and type. */
export function toPart(file: File): Promise<MessagePart> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onerror = () => reject(reader.error);
    reader.onload = () =>
      resolve({
        name: file.name,
        content_type: file.type || 'application/octet-stream',
        content_encoding: 'base64',
        // The result is a data URL; the base64 follows the comma.
        content: String(reader.result).split(',', 2)[1] ?? '',
      });
    reader.readAsDataURL(file);
  });
}
