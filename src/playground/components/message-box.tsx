/** The description and validity of a field, for screen readers. */
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

/** Maximum height in lines. */
const maxRows = 8;

/** A text area: Enter submits its form, Shift+Enter starts a new line. */
export const MessageBox = ({ label, id, placeholder, value, onInput, aria }: MessageBoxProps) => (
  <textarea
    {...aria}
    id={id}
    aria-label={label}
    placeholder={placeholder}
    rows={Math.min(value.split('\n').length, maxRows)}
    value={value}
    onInput={({ currentTarget }) => onInput(currentTarget.value)}
    onKeyDown={(event) => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      event.currentTarget.form?.requestSubmit();
    }}
  />
);
