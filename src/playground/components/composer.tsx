import { useRef, useState } from 'preact/hooks';
import type { AgentManifest, MessagePart } from '../../client/client.ts';
import { isFinal } from '../../core/run-state.ts';
import { formatBytes } from '../format.ts';
import { usePlayground } from '../playground.ts';
import { AttachButton, AttachmentList, toPart } from './attachments.tsx';
import { Icon } from './icons.tsx';
import { MessageBox } from './message-box.tsx';

/** Bytes of all files together. Base64 adds a third, and the server accepts 10 MiB. */
const maxBytes = 7_000_000;

interface Draft {
  readonly text: string;
  readonly files: readonly File[];
  /** Idempotency key: sending the draft again after a lost connection creates no second run. */
  readonly key: string;
}

const newDraft = (text = '', files: readonly File[] = []): Draft => ({
  text,
  files,
  key: crypto.getRandomValues(new Uint32Array(4)).join('-'),
});

/** The box for the next message to the agent. */
export function Composer({ agent, manifest }: { agent: string; manifest: AgentManifest | undefined }) {
  const { conversation } = usePlayground();
  const [{ text, files, key }, setDraft] = useState(() => newDraft());
  const [tooLarge, setTooLarge] = useState(false);
  // A ref, because a second Enter would see the old state.
  const busy = useRef(false);
  const empty = text.trim() === '' && files.length === 0;

  const attach = (added: readonly File[]): void => {
    const all = [...files, ...added];
    const fits = all.reduce((sum, file) => sum + file.size, 0) <= maxBytes;
    setTooLarge(!fits);
    if (fits) setDraft(newDraft(text, all));
  };
  const send = async (): Promise<void> => {
    if (empty || busy.current) return;
    busy.current = true;
    try {
      if (await conversation.send(agent, await partsOf(text, files), titleOf(text, files), key)) setDraft(newDraft());
    } finally {
      busy.current = false;
    }
  };
  const problem = tooLarge
    ? `The files may have at most ${formatBytes(maxBytes)} together.`
    : conversation.problem.value;

  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        attach([...(event.dataTransfer?.files ?? [])]);
      }}
    >
      {problem !== undefined && (
        <p class="problem" role="alert">
          {problem}
        </p>
      )}
      <AttachmentList
        files={files}
        onRemove={(file) =>
          setDraft(
            newDraft(
              text,
              files.filter((other) => other !== file),
            ),
          )
        }
      />
      <div class="box">
        <AttachButton accept={acceptedTypes(manifest)} onPick={attach} />
        <MessageBox
          id="message"
          label={`Message to ${agent}`}
          placeholder={`Message ${agent}…`}
          value={text}
          onInput={(next) => setDraft(newDraft(next, files))}
        />
        <StopButton />
        <button type="submit" class="primary round" aria-label="Send" disabled={empty || conversation.sending.value}>
          <Icon name="send" />
        </button>
      </div>
    </form>
  );
}

function StopButton() {
  const { conversation } = usePlayground();
  const run = conversation.followed.value?.record.run;
  if (run === undefined || isFinal(run.status)) return null;
  return (
    <button
      type="button"
      class="stop round"
      aria-label="Stop the run"
      disabled={run.status === 'cancelling'}
      onClick={() => void conversation.cancel(run.run_id)}
    >
      <Icon name="stop" />
    </button>
  );
}

async function partsOf(text: string, files: readonly File[]): Promise<MessagePart[]> {
  const attached = await Promise.all(files.map(toPart));
  return text.trim() === '' ? attached : [{ content_type: 'text/plain', content: text }, ...attached];
}

const titleOf = (text: string, files: readonly File[]): string =>
  text.trim().slice(0, 60) || files.map(({ name }) => name).join(', ');

/** The content types for the file picker; undefined if the agent accepts all. */
function acceptedTypes(manifest: AgentManifest | undefined): string | undefined {
  const types = manifest?.input_content_types ?? ['*/*'];
  return types.includes('*/*') ? undefined : types.join(',');
}
