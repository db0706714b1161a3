import { usePlayground } from '../playground.ts';
import type { View } from '../router.ts';
import { Icon } from './icons.tsx';

const views: readonly { view: View; label: string; icon: 'agents' | 'chat' | 'inspect' | 'runs' }[] = [
  { view: 'agents', label: 'Agents', icon: 'agents' },
  { view: 'chat', label: 'Conversation', icon: 'chat' },
  { view: 'inspect', label: 'Inspector', icon: 'inspect' },
  { view: 'runs', label: 'Runs', icon: 'runs' },
];

export function Navigation() {
  const { router } = usePlayground();
  const current = router.route.value.view;
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
          </a>
        ))}
      </nav>
      <a class="quiet docs" href="docs" target="_blank" rel="noopener">
        API docs
      </a>
    </header>
  );
}
