import { usePlayground } from '../playground.ts';
import { shownView, type View } from '../router.ts';
import { Icon } from './icons.tsx';

const views: readonly { view: View; label: string; icon: View }[] = [
  { view: 'agents', label: 'Agents', icon: 'agents' },
  { view: 'chat', label: 'Conversation', icon: 'chat' },
  { view: 'inspect', label: 'Inspector', icon: 'inspect' },
  { view: 'runs', label: 'Runs', icon: 'runs' },
  { view: 'awaiting', label: 'Awaiting', icon: 'awaiting' },
];

export function Navigation() {
  const { router, login } = usePlayground();
  const current = shownView(router.route.value);
  return (
    <header class="top">
      <h1 class="brand">
        <Icon name="logo" />
        Rivulet <span>playground</span>
      </h1>
      <nav class="views" aria-label="Views">
        {views.map(({ view, label, icon }) => (
          <a
            key={view}
            href={router.href({ view })}
            data-view={view}
            aria-current={view === current ? 'page' : undefined}
          >
            <Icon name={icon} />
            {label}
            {view === 'awaiting' && <AwaitingCount />}
          </a>
        ))}
      </nav>
      {login.token !== '' && (
        <button type="button" class="bare" onClick={() => login.forget()}>
          Forget token
        </button>
      )}
      <a class="quiet docs" href="docs" target="_blank" rel="noopener">
        API docs
      </a>
    </header>
  );
}

/** The number of runs that wait for the reply of a person. */
function AwaitingCount() {
  const { awaiting } = usePlayground();
  const count = awaiting.rows.value?.length ?? 0;
  if (count === 0) return null;
  return <span class="count">{awaiting.older.value === undefined ? count : `${count}+`}</span>;
}
