import { Component, type ComponentChildren } from 'preact';

interface ErrorBoundaryProps {
  readonly children: ComponentChildren;
}

/** Contains an error of its children, so that the rest of the page works. */
export class ErrorBoundary extends Component<ErrorBoundaryProps, { readonly failed: boolean }> {
  override state = { failed: false };

  static override getDerivedStateFromError(): { failed: boolean } {
    return { failed: true };
  }

  override render({ children }: ErrorBoundaryProps): ComponentChildren {
    if (!this.state.failed) return children;
    return <p class="problem">This content cannot be displayed. The inspector shows it as JSON.</p>;
  }
}
