import { useState } from 'preact/hooks';
import { formatDuration } from '../format.ts';
import { usePlayground } from '../playground.ts';
import { type HttpRequest, toCurl, toPython, toTypeScript } from '../request-code.ts';
import type { LoggedRequest } from '../request-log.ts';
import { CopyButton } from './copy-button.tsx';
import { FilterBar } from './filter-bar.tsx';

interface Language {
  readonly label: string;
  readonly write: (request: HttpRequest) => string;
}

const curl: Language = { label: 'curl', write: toCurl };
const languages: readonly Language[] = [
  curl,
  { label: 'TypeScript', write: toTypeScript },
  { label: 'Python', write: toPython },
];

/** The requests of the page, newest first, each as code that repeats it. */
export function RequestList({ run_id }: { run_id: string }) {
  const { requests } = usePlayground();
  const [all, setAll] = useState(false);
  const [selected, setSelected] = useState(0);
  const shown = requests.list.value.filter((request) => all || request.run_id === run_id);
  return (
    <>
      <FilterBar
        label="Requests to show"
        options={['Of this run', 'All']}
        selected={all ? 1 : 0}
        onSelect={(index) => setAll(index === 1)}
      />
      <FilterBar
        label="Language"
        options={languages.map(({ label }) => label)}
        selected={selected}
        onSelect={setSelected}
      />
      {shown.length === 0 && <p class="note">The page has sent no request for this run.</p>}
      <ol class="calls">
        {shown.map((request) => (
          <Request key={request.key} request={request} language={languages[selected] ?? curl} />
        ))}
      </ol>
    </>
  );
}

function Request({ request, language: { label, write } }: { request: LoggedRequest; language: Language }) {
  const { method, status, time, count } = request;
  const { pathname, search } = new URL(request.url);
  return (
    <li>
      <details>
        <summary class="entry">
          <span class="method">{method}</span>
          <span class="path" title={pathname + search}>
            {pathname + search}
          </span>
          <span class="time">
            {status === undefined ? '…' : status || 'failed'}
            {time !== undefined && `, ${formatDuration(time)}`}
            {count > 1 && ` ×${count}`}
          </span>
        </summary>
        <pre>{write(request)}</pre>
      </details>
      <CopyButton label={`Copy ${method} ${pathname} as ${label}`} text={() => write(request)} />
    </li>
  );
}
