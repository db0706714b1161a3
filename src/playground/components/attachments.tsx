import { useRef } from 'preact/hooks';
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
