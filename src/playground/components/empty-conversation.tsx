import type { AgentManifest } from '../../client/client.ts';
import { usePlayground } from '../playground.ts';
import { promptsOf, type SamplePrompt } from '../sample-prompts.ts';
import { lazily } from './lazily.tsx';
import { Markdown } from './markdown.tsx';

const AgentClients = lazily(() => import('./agent-clients.tsx').then(({ AgentClients }) => AgentClients));

/** What to do first with an agent: its documentation, examples to send with one click, and other clients. */
export function EmptyConversation({ agent }: { agent: AgentManifest }) {
  const { documentation } = agent.metadata ?? {};
  const examples = promptsOf(agent);
  return (
    <div class="start">
      {documentation !== undefined && <Markdown text={documentation} />}
      {examples.length > 0 && (
        <section aria-labelledby="examples-title">
          <h2 id="examples-title">Try it</h2>
          <ul class="examples">
            {examples.map((example, index) => (
              <li key={`${index}`}>
                <ExampleButton agent={agent.name} example={example} />
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
      <AgentsLink>Choose another agent</AgentsLink>
    </div>
  );
}

function ExampleButton({ agent, example: { title, prompt } }: { agent: string; example: SamplePrompt }) {
  const { conversation } = usePlayground();
  return (
    <button
      type="button"
      disabled={conversation.sending.value}
      onClick={() => void conversation.send(agent, [{ content_type: 'text/plain', content: prompt }])}
    >
      {title}
    </button>
  );
}

/** The way to the agents on a phone, which shows one view at a time. */
function AgentsLink({ children }: { children: string }) {
  const { router } = usePlayground();
  return (
    <a class="narrow button" href={router.href({ view: 'agents' })}>
      {children}
    </a>
  );
}
