import { useState } from 'preact/hooks';
import type { LoggedRequest } from '../app/connection.ts';
import { usePlayground } from '../app/playground.ts';
import { CopyButton, FilterBar, Fold } from '../elements/controls.tsx';
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

const extents = [{ label: 'Of this run' }, { label: 'All' }];

/** The requests of the page, newest first, each as code that repeats it. */
export function RequestList({ run_id }: { run_id: string }) {
  const { connection } = usePlayground();
  const [extent, setExtent] = useState(0);
  const [selected, setSelected] = useState(0);
  const shown = connection.requests.value.filter((request) => extent === 1 || request.run_id === run_id);
  return (
    <>
      <FilterBar label="Requests to show" options={extents} selected={extent} onSelect={setExtent} />
      <FilterBar label="Language" options={languages} selected={selected} onSelect={setSelected} />
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
      <Fold
        class="entry"
        summary={
          <>
            <span class="type">{method}</span>
            <code class="summary clip" title={pathname + search}>
              {pathname + search}
            </code>
            <span class="time">
              {status === undefined ? '…' : status || 'failed'}
              {time !== undefined && `, ${formatDuration(time)}`}
              {count > 1 && ` ×${count}`}
            </span>
          </>
        }
      >
        <pre>{write(request)}</pre>
      </Fold>
      <CopyButton label={`Copy ${method} ${pathname} as ${label}`} text={() => write(request)} />
    </li>
  );
}
