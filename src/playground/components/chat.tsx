import { useEffect, useRef } from 'preact/hooks';
import type { AgentManifest } from '../../client/client.ts';
import { usePlayground } from '../playground.ts';
import { Composer } from './composer.tsx';
import { RunView } from './run-view.tsx';
import { ScrollBox } from './scroll-box.tsx';

/** Pixels from the end within which the view keeps scrolling to the end. */
const endDistance = 80;

export function Chat() {
  const { catalog, conversation, router } = usePlayground();
  const { agent: name, run } = router.route.value;
  const agent = catalog.find(name);
  const runs = conversation.runs.value;
  const followed = conversation.followed.value;
  const scroller = useRef<HTMLElement>(null);
  const atEnd = useRef(true);
  // Keeps the end in view while the output grows, unless the user has scrolled up.
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
          atEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < endDistance;
        }}
      >
        <div class="column">
          {agent !== undefined && <Manifest agent={agent} open={runs.length === 0} />}
          {agent === undefined && catalog.agents.value !== undefined && (
            <p class="problem">This server has no agent {name}. Choose one from the list.</p>
          )}
          {followed?.problem !== undefined && <p class="problem">{followed.problem}</p>}
          {agent !== undefined && runs.length === 0 && <EmptyConversation />}
          {runs.map((item) => (
            <RunView key={item.run_id} run={item} followed={item.run_id === run} />
          ))}
        </div>
      </ScrollBox>
      <Composer agent={name} manifest={agent} />
    </div>
  );
}

function EmptyConversation() {
  return (
    <div class="empty">
      <p>No messages yet.</p>
      <p class="note">
        <kbd>Enter</kbd> sends, <kbd>Shift</kbd>+<kbd>Enter</kbd> starts a new line. Drop files on the box to attach
        them.
      </p>
    </div>
  );
}

function Welcome() {
  return (
    <div class="empty">
      <h2>Choose an agent</h2>
      <p>Send it messages, watch its events live, and copy each request as a curl command.</p>
    </div>
  );
}

/** The agent's description of itself. */
function Manifest({ agent, open }: { agent: AgentManifest; open: boolean }) {
  const { metadata = {} } = agent;
  const facts: readonly (readonly [string, string | undefined])[] = [
    ['Input', agent.input_content_types.join(', ')],
    ['Output', agent.output_content_types.join(', ')],
    ['Capabilities', metadata.capabilities?.map(({ name }) => name).join(', ')],
    ['Domains', metadata.domains?.join(', ')],
    ['Languages', metadata.natural_languages?.join(', ')],
    ['Models', metadata.recommended_models?.join(', ')],
    ['Dependencies', metadata.dependencies?.map(({ name }) => name).join(', ')],
    ['Author', metadata.author?.name],
    ['License', metadata.license],
    ['Tags', metadata.tags?.join(', ')],
  ];
  return (
    <details class="manifest" open={open}>
      <summary>
        <strong>{agent.name}</strong>
        <span>{agent.description}</span>
      </summary>
      <dl>
        {facts.map(([term, fact]) =>
          fact === undefined || fact === '' ? null : (
            <div key={term}>
              <dt>{term}</dt>
              <dd>{fact}</dd>
            </div>
          ),
        )}
      </dl>
    </details>
  );
}
