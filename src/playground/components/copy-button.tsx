import { useEffect, useState } from 'preact/hooks';
import { Icon } from './icons.tsx';

/** Milliseconds for which the confirmation is shown. */
const confirmation = 1_500;

export function CopyButton({ label, text }: { label: string; text: () => string }) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), confirmation);
    return () => clearTimeout(timer);
  }, [copied]);
  return (
    <button
      type="button"
      class="bare copy"
      aria-label={copied ? `Copied: ${label}` : label}
      onClick={() => void copy(text()).then(setCopied)}
    >
      <Icon name="copy" />
      <span role="status">{copied ? 'Copied' : ''}</span>
    </button>
  );
}

// Browsers have navigator.clipboard on https and localhost only; execCommand works elsewhere.
async function copy(text: string): Promise<boolean> {
  if (navigator.clipboard !== undefined) {
    return navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
  }
  const box = document.createElement('textarea');
  box.value = text;
  document.body.append(box);
  box.select();
  const done = document.execCommand('copy');
  box.remove();
  return done;
}
