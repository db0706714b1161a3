import type { RunStatus } from '../../client/client.ts';

export function StatusBadge({ status }: { status: RunStatus }) {
  return (
    <span class="badge" data-status={status}>
      {status}
    </span>
  );
}
