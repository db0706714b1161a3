import { useMemo } from 'preact/hooks';
import type { MessagePart } from '../../client/client.ts';
import { contentOf } from '../content.ts';
import { ArtifactView } from './artifact-view.tsx';
import { Markdown } from './markdown.tsx';
import { Steps } from './steps.tsx';

/** As much of a message as is shown. */
interface Shown {
  readonly role: string;
  readonly parts: readonly MessagePart[];
}

/** A message. What has not changed since the last frame is the same object, and is not made again. */
export function MessageView({ message }: { message: Shown }) {
  return useMemo(() => {
    const { text, citations, steps, artifacts } = contentOf(message.parts);
    const byUser = message.role === 'user';
    return (
      <div class={byUser ? 'message user' : 'message'}>
        <p class="role">{byUser ? 'You' : message.role.replace(/^agent\//, '')}</p>
        {byUser ? <p class="said">{text}</p> : <Markdown text={text} citations={citations} />}
        {artifacts.length > 0 && (
          <ul class="artifacts">
            {artifacts.map((part, at) => (
              <li key={`${at}`}>
                <ArtifactView part={part} />
              </li>
            ))}
          </ul>
        )}
        {steps.length > 0 && <Steps steps={steps} />}
      </div>
    );
  }, [message]);
}
