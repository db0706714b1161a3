import { useRef } from 'preact/hooks';
import { Icon } from './icons.tsx';

/** `accept` is as an input has it: the types that may be picked, or undefined for any. */
export function FileButton({ accept, onPick }: { accept: string | undefined; onPick: (files: File[]) => void }) {
  const picker = useRef<HTMLInputElement>(null);
  return (
    <>
      <input
        ref={picker}
        type="file"
        multiple
        hidden
        aria-label="Files"
        accept={accept}
        onChange={({ currentTarget }) => {
          onPick([...(currentTarget.files ?? [])]);
          // The same file may be picked again.
          currentTarget.value = '';
        }}
      />
      <button type="button" class="bare" aria-label="Attach files" onClick={() => picker.current?.click()}>
        <Icon name="attach" />
      </button>
    </>
  );
}
