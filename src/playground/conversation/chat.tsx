import { useEffect, useRef } from 'preact/hooks';
import type { AgentManifest } from '../../client/client.ts';
import { promptsOf } from '../app/catalog.ts';
import { usePlayground } from '../app/playground.ts';
import { ScrollBox } from '../elements/controls.tsx';
import { AgentClients } from './agent-clients.tsx';
import { Composer } from './composer.tsx';
import { ManifestView } from './manifest-view.tsx';
import { Markdown } from './markdown.tsx';
import { RunView } from './run-view.tsx';

/** Pixels from the end within which the view keeps scrolling to the end. */
const endDistance = 80;
/** Pixels above a question. */
const margin = 12;

export function Chat() {
  const { catalog, conversation, router } = usePlayground();
  const { agent: name, run } = router.route.value;
  const agent = catalog.find(name);
  const runs = conversation.runs.value;
  const followed = conversation.followed.value;
  const scroller = useRef<HTMLElement>(null);
  const atEnd = useRef(true);
  const asked = conversation.question.value !== undefined;
  useEffect(() => {
    if (!asked) atEnd.current = true;
  }, [asked]);
  // Keeps the end in view while the output grows, unless the user has scrolled up. A question is shown from its top, and
  // so is an agent without runs.
  useEffect(() => {
    const box = scroller.current;
    if (box === null || !atEnd.current || runs.length === 0) return;
    const question = box.querySelector('[data-followed="true"] .question[data-state="open"]');
    const top = question === null ? 0 : question.getBoundingClientRect().top - box.getBoundingClientRect().top;
    box.scrollTop = question === null ? box.scrollHeight : Math.min(box.scrollHeight, box.scrollTop + top - margin);
  }, [followed, runs]);
  useEffect(() => {
    atEnd.current = true;
  }, [run]);
  // The agent is known with the first event of the run.
  if (name === undefined) return <div class="empty">{followed?.problem ?? 'Loading the run…'}</div>;
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
        <div class="column stack">
          {agent !== undefined && <ManifestView manifest={agent} open={runs.length === 0} />}
          {agent === undefined && catalog.agents.value !== undefined && (
            <p class="problem">This server has no agent {name}. Choose one from the list.</p>
          )}
          {followed?.problem !== undefined && <p class="problem">{followed.problem}</p>}
          {agent !== undefined && runs.length === 0 && <EmptyConversation agent={agent} />}
          {runs.map((item) => (
            <RunView
              key={item.run_id}
              run={item}
              followed={followed?.record.run_id === item.run_id ? followed : undefined}
            />
          ))}
        </div>
      </ScrollBox>
      <Composer agent={name} manifest={agent} />
    </div>
  );
}

/** What to do first with an agent: its documentation, examples to send with one click, and other clients. */
function EmptyConversation({ agent }: { agent: AgentManifest }) {
  const { conversation, router } = usePlayground();
  const { documentation } = agent.metadata ?? {};
  const examples = promptsOf(agent);
  return (
    <div class="start stack">
      {documentation !== undefined && <Markdown text={documentation} />}
      {examples.length > 0 && (
        <section class="stack" aria-labelledby="examples-title">
          <h2 id="examples-title">Try it</h2>
          <ul class="examples row">
            {examples.map(({ title, prompt }, index) => (
              <li key={`${index}`}>
                <button
                  type="button"
                  disabled={conversation.sending.value}
                  onClick={() => void conversation.send(agent.name, [{ content_type: 'text/plain', content: prompt }])}
                >
                  {title}
                </button>
              </li>
            ))}
          </ul>
        </section>
      )}
      <p class="note">
        No messages yet. <kbd>Enter</kbd> sends, <kbd>Shift</kbd>+<kbd>Enter</kbd> starts a new line. Drop files on the
        box to attach them.
      </p>
      <AgentClients agent={agent} />
      {/* A phone shows one view at a time. */}
      <a class="narrow" href={router.href({ view: 'agents' })}>
        Choose another agent
      </a>
    </div>
  );
}
