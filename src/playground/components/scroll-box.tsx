import type { ComponentChildren, HTMLAttributes, Ref } from 'preact';

export interface ScrollBoxProps extends Omit<HTMLAttributes<HTMLElement>, 'label'> {
  readonly label: string;
  readonly box?: Ref<HTMLElement>;
  readonly children: ComponentChildren;
}

/** What scrolls by itself: it can be reached, and so be scrolled, by keyboard. */
export const ScrollBox = ({ label, box, children, ...rest }: ScrollBoxProps) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: without it, only a pointer could scroll.
  <section {...rest} aria-label={label} tabIndex={0} {...(box && { ref: box })}>
    {children}
  </section>
);
