import { usePlayground } from '../playground.ts';
import { AgentList } from './agent-list.tsx';
import { Announcer } from './announcer.tsx';
import { Chat } from './chat.tsx';
import { ConnectionStatus } from './connection-status.tsx';
import { Inspector } from './inspector.tsx';
import { Navigation } from './navigation.tsx';
import { RunsTable } from './runs-table.tsx';
import { SessionList } from './session-list.tsx';

/** A wide window shows all views side by side, a narrow one only the selected view; the style sheet decides. */
export function App() {
  const { router } = usePlayground();
  const { view } = router.route.value;
  return (
    <div class="app" data-view={view}>
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to the conversation
      </button>
      <Navigation />
      <aside class="side" aria-label="Agents and sessions">
        <AgentList />
        <SessionList />
      </aside>
      <main id="main" class="main" tabIndex={-1}>
        {view === 'runs' ? <RunsTable /> : <Chat />}
      </main>
      <Inspector />
      <ConnectionStatus />
      <Announcer />
    </div>
  );
}
