import { clock } from '../measures.ts';
import { usePlayground } from '../playground.ts';
import { Icon } from './icons.tsx';

/** The conversations that this browser remembers, of the agent that is chosen. */
export function SessionList() {
  const { memory, places } = usePlayground();
  const { agent, session } = places.now.value;
  if (agent === undefined) return null;
  const sessions = memory.sessions.value.filter((one) => one.agent === agent);
  return (
    <section aria-labelledby="sessions-title">
      <div class="row">
        <h2 id="sessions-title">Sessions</h2>
        <a class="quiet" href={places.href({ session: undefined, run: undefined, view: 'chat' })}>
          <Icon name="plus" />
          New
        </a>
      </div>
      {sessions.length === 0 && <p class="hint">What you say to {agent} is listed here, to come back to.</p>}
      <ul class="sessions">
        {sessions.map(({ id, title, at }) => (
          <li key={id} class="row">
            <a
              href={places.href({ session: id, run: undefined, view: 'chat' })}
              aria-current={id === session ? 'true' : undefined}
            >
              <span class="title">{title}</span>
              <time dateTime={at}>{clock(at)}</time>
            </a>
            <button
              type="button"
              class="bare"
              aria-label={`Forget the session ${title}`}
              onClick={() => memory.forget(id)}
            >
              <Icon name="close" />
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
