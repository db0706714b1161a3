import { useState } from 'preact/hooks';
import { curl } from '../calls.ts';
import { duration } from '../measures.ts';
import { usePlayground } from '../playground.ts';
import { CopyButton } from './copy-button.tsx';
import { FilterBar } from './filter-bar.tsx';

/** The calls that the page has made, newest first, each to be made again in a shell. */
export function CallList({ run_id }: { run_id: string }) {
  const { calls } = usePlayground();
  const [all, setAll] = useState(false);
  const shown = calls.list.value.filter((call) => all || call.run_id === run_id);
  return (
    <>
      <FilterBar
        label="Which calls"
        options={['Of this run', 'All']}
        chosen={all ? 1 : 0}
        onChoose={(at) => setAll(at === 1)}
      />
      <ol class="calls">
        {shown.map((call) => (
          <li key={call.key}>
            <details>
              <summary>
                <span class="method">{call.method}</span>
                <span class="path">{new URL(call.url).pathname + new URL(call.url).search}</span>
                <span class="time">
                  {call.status === undefined ? '…' : call.status || 'broke'}
                  {call.time !== undefined && `, ${duration(call.time)}`}
                  {call.times > 1 && ` ×${call.times}`}
                </span>
              </summary>
              <pre>{curl(call)}</pre>
            </details>
            <CopyButton label={`Copy ${call.method} ${new URL(call.url).pathname} as curl`} text={() => curl(call)} />
          </li>
        ))}
      </ol>
    </>
  );
}
