import { Component, type ComponentChildren } from 'preact';

export interface GuardProps {
  readonly children: ComponentChildren;
}

/** Keeps an error of what it shows to itself: the rest of the page goes on. */
export class Guard extends Component<GuardProps, { readonly failed: boolean }> {
  override state = { failed: false };

  static override getDerivedStateFromError(): { failed: boolean } {
    return { failed: true };
  }

  override render({ children }: GuardProps): ComponentChildren {
    if (!this.state.failed) return children;
    return <p class="problem">This cannot be shown here. The inspector has it as JSON.</p>;
  }
}
