import { useId, useMemo } from 'preact/hooks';
import type { MessagePart } from '../../client/client.ts';
import { cutOffNotes, cutOffOf, isInterrupted } from '../../core/cut-off.ts';
import type { Message } from '../../schema/message.ts';
import { CopyButton } from '../elements/controls.tsx';
import { formatDuration } from '../elements/format.ts';
import { ArtifactView } from './artifact.tsx';
import { Citations, Sources } from './citations.tsx';
import { contentOf, segmentsOf } from './content.ts';
import { Markdown } from './markdown.tsx';
import type { Note } from './run-flow.ts';
import { Steps, type StepTime } from './steps.tsx';

/** The fields of a message that are shown. */
interface ShownMessage {
  readonly role: string;
  readonly parts: readonly MessagePart[];
  readonly created_at?: string | undefined;
  readonly completed_at?: string | null | undefined;
  readonly finish_reason?: Message['finish_reason'];
}

export interface MessageViewProps {
  readonly message: ShownMessage;
  /** What the log has between its parts. */
  readonly notes?: readonly Note[];
  readonly timeOf?: StepTime | undefined;
  /** Whether more of it may come. */
  readonly live?: boolean;
  /** Whether another agent than the run's has sent it. */
  readonly called?: boolean;
}

/** A message with its author, and a button that copies its text. */
export function MessageView({ message, called = false, ...body }: MessageViewProps) {
  const { role, parts } = message;
  const byUser = role === 'user';
  const { text } = useMemo(() => contentOf(parts), [parts]);
  const interrupted = isInterrupted(message);
  const cutOff = cutOffOf(message);
  return (
    <div
      class={byUser ? 'message stack user' : 'message stack'}
      data-called={called || undefined}
      data-interrupted={interrupted || undefined}
    >
      <div class="role row">
        {/* What is beside the user's box names the user for screen readers only. */}
        <span class={byUser ? 'unseen' : undefined}>{byUser ? 'You' : role.replace(/^agent\//, '')}</span>
        {called && <CallTime message={message} />}
        {interrupted && <span>Interrupted, and said again below</span>}
        {cutOff && <span>{cutOffNotes[cutOff]}</span>}
        {text !== '' && !body.live && (
          <CopyButton label={byUser ? 'Copy your message' : 'Copy the message'} text={() => text} />
        )}
      </div>
      <MessageBody message={message} {...body} />
    </div>
  );
}

/** The time of a call, from the message that the called agent has sent. */
function CallTime({ message: { created_at, completed_at } }: { message: ShownMessage }) {
  const time = Date.parse(completed_at ?? '') - Date.parse(created_at ?? '');
  return time > 0 ? <span class="time">{formatDuration(time)}</span> : null;
}

const noNotes: readonly Note[] = [];

/** Text, steps and artifacts in their order. It is memoized: an unchanged message is the same object in each frame. */
export function MessageBody({ message, notes = noNotes, timeOf, live = false }: Omit<MessageViewProps, 'called'>) {
  const sources = useId();
  return useMemo(() => {
    const { citations, blocks } = contentOf(message.parts);
    if (message.role === 'user') return <UserText parts={message.parts} />;
    const cited = new Citations(citations);
    const segments = segmentsOf(blocks, notes);
    return (
      <>
        {segments.map((segment, index) => {
          const running = live && index === segments.length - 1;
          switch (segment.kind) {
            case 'steps':
              return <Steps key={`${index}`} rows={segment.rows} running={running} timeOf={timeOf} />;
            case 'artifact':
              return <ArtifactView key={`${index}`} part={segment.artifact} />;
            default:
              return (
                <Markdown
                  key={`${index}`}
                  text={segment.text}
                  from={segment.from}
                  cited={cited}
                  sources={sources}
                  inserts={segment.inserts.map(({ at, note }) => ({
                    at,
                    content: <Steps rows={[{ note }]} running={false} timeOf={timeOf} />,
                  }))}
                />
              );
          }
        })}
        <Sources sources={cited.all} list={sources} />
      </>
    );
  }, [message, notes, live]);
}

/** What a person has written is shown as it is. */
function UserText({ parts }: { parts: readonly MessagePart[] }) {
  const { text, artifacts } = contentOf(parts);
  return (
    <>
      {text !== '' && <p class="said">{text}</p>}
      {artifacts.map((part, index) => (
        <ArtifactView key={`${index}`} part={part} />
      ))}
    </>
  );
}
