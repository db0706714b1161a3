import { size } from '../measures.ts';
import { Icon } from './icons.tsx';

/** Files that go with the next message. */
export function FileList({ files, onRemove }: { files: readonly File[]; onRemove: (file: File) => void }) {
  if (files.length === 0) return null;
  return (
    <ul class="files">
      {files.map((file, at) => (
        <li key={`${at}`}>
          {file.name} <span>{size(file.size)}</span>
          <button type="button" class="bare" aria-label={`Leave ${file.name} out`} onClick={() => onRemove(file)}>
            <Icon name="close" />
          </button>
        </li>
      ))}
    </ul>
  );
}
