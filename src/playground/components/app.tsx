import type { JSX } from 'preact';
import { usePlayground } from '../playground.ts';
import { shownView, type View } from '../router.ts';
import { AgentGallery } from './agent-gallery.tsx';
import { AgentList } from './agent-list.tsx';
import { Announcer } from './announcer.tsx';
import { AwaitingList } from './awaiting-list.tsx';
import { Chat } from './chat.tsx';
import { ConnectionStatus } from './connection-status.tsx';
import { Inspector } from './inspector.tsx';
import { Navigation } from './navigation.tsx';
import { RunsTable } from './runs-table.tsx';
import { SessionList } from './session-list.tsx';
import { TokenPrompt } from './token-prompt.tsx';

/**
 * The gallery, the runs and the questions take the whole window. The conversation has the agents and the inspector beside
 * it where there is room; a narrow window shows only the selected view. The style sheet decides.
 */
export function App() {
  const { router } = usePlayground();
  const view = shownView(router.route.value);
  const page = pageOf(view);
  return (
    <div class="app" data-view={view}>
      <button type="button" class="skip" onClick={() => document.getElementById('main')?.focus()}>
        Skip to the content
      </button>
      <Navigation />
      {page === undefined && (
        <aside class="side" aria-label="Agents and sessions">
          <AgentList />
          <SessionList />
        </aside>
      )}
      <main id="main" class="main" tabIndex={-1}>
        {page ?? <Chat />}
      </main>
      {page === undefined && <Inspector />}
      <ConnectionStatus />
      <Announcer />
      <TokenPrompt />
    </div>
  );
}

/** A view that takes the whole window. */
function pageOf(view: View): JSX.Element | undefined {
  if (view === 'agents') return <AgentGallery />;
  if (view === 'runs') return <RunsTable />;
  return view === 'awaiting' ? <AwaitingList /> : undefined;
}
