import { useState } from 'preact/hooks';
import type { LoggedRequest } from '../app/connection.ts';
import { usePlayground } from '../app/playground.ts';
import { CopyButton, FilterBar } from '../elements/controls.tsx';
import { formatDuration } from '../elements/format.ts';
import { type HttpRequest, toCurl, toPython, toTypeScript } from './request-code.ts';

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
  const { connection } = usePlayground();
  const [all, setAll] = useState(false);
  const [selected, setSelected] = useState(0);
  const shown = connection.requests.value.filter((request) => all || request.run_id === run_id);
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
      <ol class="calls lines">
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
          <span class="type">{method}</span>
          <code class="summary clip" title={pathname + search}>
            {pathname + search}
          </code>
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
