export interface FilterBarProps {
  readonly label: string;
  readonly options: readonly string[];
  readonly selected: number;
  readonly onSelect: (index: number) => void;
}

/** Buttons of which one is selected. */
export const FilterBar = ({ label, options, selected, onSelect }: FilterBarProps) => (
  <fieldset class="filters">
    <legend class="unseen">{label}</legend>
    {options.map((option, index) => (
      <button key={option} type="button" aria-pressed={index === selected} onClick={() => onSelect(index)}>
        {option}
      </button>
    ))}
  </fieldset>
);
