import { formatTime } from '../format.ts';
import { usePlayground } from '../playground.ts';
import { Icon } from './icons.tsx';

/** The sessions with the selected agent that this browser has stored. */
export function SessionList() {
  const { storage, router } = usePlayground();
  const { agent, session } = router.route.value;
  if (agent === undefined) return null;
  const sessions = storage.sessions.value.filter((stored) => stored.agent === agent);
  return (
    <section aria-labelledby="sessions-title">
      <div class="row">
        <h2 id="sessions-title">Sessions</h2>
        <a class="quiet" href={router.href({ session: undefined, run: undefined, view: 'chat' })}>
          <Icon name="plus" />
          New
        </a>
      </div>
      {sessions.length === 0 && <p class="note">Your sessions with {agent} are listed here.</p>}
      <ul class="sessions">
        {sessions.map(({ id, title, createdAt }) => (
          <li key={id} class="row">
            <a
              href={router.href({ session: id, run: undefined, view: 'chat' })}
              aria-current={id === session ? 'true' : undefined}
            >
              <span class="title">{title}</span>
              <time dateTime={createdAt}>{formatTime(createdAt)}</time>
            </a>
            <button
              type="button"
              class="bare"
              aria-label={`Remove the session ${title} from this list`}
              onClick={() => storage.removeSession(id)}
            >
              <Icon name="close" />
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
