/** What is wrong with a field, and what stands beside it, for screen readers. */
export interface FieldAria {
  readonly 'aria-describedby': string | undefined;
  readonly 'aria-invalid': true | undefined;
}

export interface MessageBoxProps {
  readonly label?: string;
  readonly id?: string;
  readonly placeholder?: string;
  readonly value: string;
  readonly onInput: (text: string) => void;
  readonly aria?: FieldAria;
}

/** Lines that it grows to. */
const tallest = 8;

/** A text that Enter sends with its form, and that Shift and Enter give another line. */
export const MessageBox = ({ label, id, placeholder, value, onInput, aria }: MessageBoxProps) => (
  <textarea
    {...aria}
    id={id}
    aria-label={label}
    placeholder={placeholder}
    rows={Math.min(value.split('\n').length, tallest)}
    value={value}
    onInput={({ currentTarget }) => onInput(currentTarget.value)}
    onKeyDown={(event) => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      event.currentTarget.form?.requestSubmit();
    }}
  />
);
