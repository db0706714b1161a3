import { usePlayground } from '../playground.ts';
import { AgentList } from './agent-list.tsx';
import { Announcer } from './announcer.tsx';
import { Chat } from './chat.tsx';
import { Inspector } from './inspector.tsx';
import { LineStatus } from './line-status.tsx';
import { Navigation } from './navigation.tsx';
import { RunsTable } from './runs-table.tsx';
import { SessionList } from './session-list.tsx';

/** On a wide window all stand beside each other, on a phone one at a time: the style sheet decides, by the view. */
export function App() {
  const { places } = usePlayground();
  const { view } = places.now.value;
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
      <LineStatus />
      <Announcer />
    </div>
  );
}
