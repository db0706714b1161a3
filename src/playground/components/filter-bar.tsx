import type { ComponentChildren } from 'preact';

export interface FilterBarProps {
  readonly label: string;
  readonly options: readonly string[];
  readonly selected: number;
  readonly onSelect: (index: number) => void;
  /** Buttons of their own after these. */
  readonly more?: ComponentChildren;
}

/** Buttons of which one is selected. */
export const FilterBar = ({ label, options, selected, onSelect, more }: FilterBarProps) => (
  <fieldset class="filters">
    <legend class="unseen">{label}</legend>
    {options.map((option, index) => (
      <button key={option} type="button" aria-pressed={index === selected} onClick={() => onSelect(index)}>
        {option}
      </button>
    ))}
    {more}
  </fieldset>
);
