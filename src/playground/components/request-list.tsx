import { useState } from 'preact/hooks';
import { formatDuration } from '../format.ts';
import { usePlayground } from '../playground.ts';
import { toCurl } from '../request-log.ts';
import { CopyButton } from './copy-button.tsx';
import { FilterBar } from './filter-bar.tsx';

/** The requests of the page, newest first, each as a curl command. */
export function RequestList({ run_id }: { run_id: string }) {
  const { requests } = usePlayground();
  const [all, setAll] = useState(false);
  const shown = requests.list.value.filter((request) => all || request.run_id === run_id);
  return (
    <>
      <FilterBar
        label="Requests to show"
        options={['Of this run', 'All']}
        selected={all ? 1 : 0}
        onSelect={(index) => setAll(index === 1)}
      />
      <ol class="calls">
        {shown.map((request) => (
          <li key={request.key}>
            <details>
              <summary>
                <span class="method">{request.method}</span>
                <span class="path">{new URL(request.url).pathname + new URL(request.url).search}</span>
                <span class="time">
                  {request.status === undefined ? '…' : request.status || 'failed'}
                  {request.time !== undefined && `, ${formatDuration(request.time)}`}
                  {request.count > 1 && ` ×${request.count}`}
                </span>
              </summary>
              <pre>{toCurl(request)}</pre>
            </details>
            <CopyButton
              label={`Copy ${request.method} ${new URL(request.url).pathname} as curl`}
              text={() => toCurl(request)}
            />
          </li>
        ))}
      </ol>
    </>
  );
}
