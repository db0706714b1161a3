import { useEffect, useRef } from 'preact/hooks';
import { usePlayground } from '../playground.ts';
import { Composer } from './composer.tsx';
import { Manifest } from './manifest.tsx';
import { ScrollBox } from './scroll-box.tsx';
import { Turn } from './turn.tsx';

/** Pixels from the end at which the reader still means to see the end. */
const near = 80;

export function Chat() {
  const { catalog, conversation, places } = usePlayground();
  const { agent: name, run } = places.now.value;
  const agent = catalog.find(name);
  const runs = conversation.runs.value;
  const followed = conversation.followed.value;
  const scroller = useRef<HTMLElement>(null);
  const atEnd = useRef(true);
  // Stays at the end while it grows, and where the reader is who has scrolled up.
  useEffect(() => {
    const box = scroller.current;
    if (box !== null && atEnd.current) box.scrollTop = box.scrollHeight;
  }, [followed, runs]);
  useEffect(() => {
    atEnd.current = true;
  }, [run]);
  if (name === undefined) return <Welcome />;
  return (
    <div class="chat">
      <ScrollBox
        class="scroller"
        label={`Conversation with ${name}`}
        box={scroller}
        onScroll={({ currentTarget: box }) => {
          atEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < near;
        }}
      >
        <div class="column">
          {agent !== undefined && <Manifest agent={agent} open={runs.length === 0} />}
          {agent === undefined && catalog.agents.value !== undefined && (
            <p class="problem">There is no agent {name} on this server. Choose one from the list.</p>
          )}
          {followed?.problem !== undefined && <p class="problem">{followed.problem}</p>}
          {agent !== undefined && runs.length === 0 && <Nothing />}
          {runs.map((one) => (
            <Turn key={one.run_id} run={one} followed={one.run_id === run} />
          ))}
        </div>
      </ScrollBox>
      <Composer agent={name} manifest={agent} />
    </div>
  );
}

function Nothing() {
  return (
    <div class="empty">
      <p>Nothing said yet.</p>
      <p class="hint">
        <kbd>Enter</kbd> sends, <kbd>Shift</kbd> and <kbd>Enter</kbd> begin a line. Files can be dropped on the box.
      </p>
    </div>
  );
}

function Welcome() {
  return (
    <div class="empty">
      <h2>Choose an agent</h2>
      <p>Talk to it, watch its events as they come, and take every call with you as a line for your shell.</p>
    </div>
  );
}
