import type { ComponentChildren } from 'preact';
import { useId, useRef, useState } from 'preact/hooks';

export interface Tab {
  readonly name: string;
  readonly panel: () => ComponentChildren;
}

/** Tabs after the ARIA pattern: arrow keys switch tabs, Tab moves into the panel. */
export function Tabs({ label, tabs }: { label: string; tabs: readonly Tab[] }) {
  const id = useId();
  const [selected, setSelected] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  const select = (index: number): void => {
    const next = (index + tabs.length) % tabs.length;
    setSelected(next);
    list.current?.querySelectorAll('button')[next]?.focus();
  };
  const keys: Readonly<Record<string, () => void>> = {
    ArrowRight: () => select(selected + 1),
    ArrowLeft: () => select(selected - 1),
    Home: () => select(0),
    End: () => select(-1),
  };
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label} ref={list}>
        {tabs.map(({ name }, index) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`${id}-tab-${index}`}
            aria-selected={index === selected}
            aria-controls={`${id}-panel`}
            tabIndex={index === selected ? 0 : -1}
            onClick={() => setSelected(index)}
            onKeyDown={(event) => {
              const action = keys[event.key];
              if (action === undefined) return;
              event.preventDefault();
              action();
            }}
          >
            {name}
          </button>
        ))}
      </div>
      <div
        // A new element for each tab, which begins at its top.
        key={selected}
        class="panel"
        role="tabpanel"
        id={`${id}-panel`}
        aria-labelledby={`${id}-tab-${selected}`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: the ARIA pattern of tabs has a focusable panel.
        tabIndex={0}
      >
        {tabs[selected]?.panel()}
      </div>
    </>
  );
}
