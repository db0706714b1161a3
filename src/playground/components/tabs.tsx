import type { ComponentChildren } from 'preact';
import { useId, useRef, useState } from 'preact/hooks';

export interface Tab {
  readonly name: string;
  readonly panel: () => ComponentChildren;
}

/** Tabs as screen readers and keyboards know them: the arrows go from one to the next, Tab into the panel. */
export function Tabs({ label, tabs }: { label: string; tabs: readonly Tab[] }) {
  const id = useId();
  const [chosen, setChosen] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  const go = (at: number): void => {
    const next = (at + tabs.length) % tabs.length;
    setChosen(next);
    list.current?.querySelectorAll('button')[next]?.focus();
  };
  const moves: Readonly<Record<string, () => void>> = {
    ArrowRight: () => go(chosen + 1),
    ArrowLeft: () => go(chosen - 1),
    Home: () => go(0),
    End: () => go(-1),
  };
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label} ref={list}>
        {tabs.map(({ name }, at) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`${id}-tab-${at}`}
            aria-selected={at === chosen}
            aria-controls={`${id}-panel`}
            tabIndex={at === chosen ? 0 : -1}
            onClick={() => setChosen(at)}
            onKeyDown={(event) => {
              const move = moves[event.key];
              if (move === undefined) return;
              event.preventDefault();
              move();
            }}
          >
            {name}
          </button>
        ))}
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the pattern of tabs wants its panel to be reached by keyboard. */}
      <div class="panel" role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-tab-${chosen}`} tabIndex={0}>
        {tabs[chosen]?.panel()}
      </div>
    </>
  );
}
