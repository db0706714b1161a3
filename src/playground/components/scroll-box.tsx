import type { ComponentChildren, HTMLAttributes, Ref } from 'preact';

export interface ScrollBoxProps extends Omit<HTMLAttributes<HTMLElement>, 'label'> {
  readonly label: string;
  readonly box?: Ref<HTMLElement>;
  readonly children: ComponentChildren;
}

/** A scrollable area that the keyboard can focus and scroll. */
export const ScrollBox = ({ label, box, children, ...rest }: ScrollBoxProps) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: without it, the keyboard could not scroll.
  <section {...rest} aria-label={label} tabIndex={0} {...(box && { ref: box })}>
    {children}
  </section>
);
