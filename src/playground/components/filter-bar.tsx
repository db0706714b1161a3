export interface FilterBarProps {
  readonly label: string;
  readonly options: readonly string[];
  readonly chosen: number;
  readonly onChoose: (at: number) => void;
}

/** Buttons of which one is pressed. */
export const FilterBar = ({ label, options, chosen, onChoose }: FilterBarProps) => (
  <fieldset class="filters">
    <legend class="unseen">{label}</legend>
    {options.map((option, at) => (
      <button key={option} type="button" aria-pressed={at === chosen} onClick={() => onChoose(at)}>
        {option}
      </button>
    ))}
  </fieldset>
);
