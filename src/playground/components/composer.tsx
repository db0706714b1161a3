import { useRef, useState } from 'preact/hooks';
import type { AgentManifest, MessagePart } from '../../client/client.ts';
import { isFinal } from '../../core/run-state.ts';
import { readFile } from '../attachment.ts';
import { size } from '../measures.ts';
import { usePlayground } from '../playground.ts';
import { FileButton } from './file-button.tsx';
import { FileList } from './file-list.tsx';
import { Icon } from './icons.tsx';
import { MessageBox } from './message-box.tsx';

/** Bytes of all files: base64 makes a third more of them, and the server takes 10 MiB. */
const most = 7_000_000;

interface Draft {
  readonly text: string;
  readonly files: readonly File[];
  /** One for what is written: sending it again after a broken line makes no second run of it. */
  readonly key: string;
}

const draft = (text = '', files: readonly File[] = []): Draft => ({
  text,
  files,
  key: crypto.getRandomValues(new Uint32Array(4)).join('-'),
});

/** What is said to the agent next. */
export function Composer({ agent, manifest }: { agent: string; manifest: AgentManifest | undefined }) {
  const { conversation } = usePlayground();
  const [{ text, files, key }, setDraft] = useState(draft);
  const [tooMuch, setTooMuch] = useState(false);
  // Not the state, which a second Enter would still see as it was.
  const busy = useRef(false);
  const empty = text.trim() === '' && files.length === 0;

  const attach = (added: readonly File[]): void => {
    const all = [...files, ...added];
    const fits = all.reduce((sum, file) => sum + file.size, 0) <= most;
    setTooMuch(!fits);
    if (fits) setDraft(draft(text, all));
  };
  const send = async (): Promise<void> => {
    if (empty || busy.current) return;
    busy.current = true;
    try {
      if (await conversation.say(agent, await partsOf(text, files), titleOf(text, files), key)) setDraft(draft());
    } finally {
      busy.current = false;
    }
  };
  const problem = tooMuch ? `All files together may have ${size(most)}.` : conversation.problem.value;

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
      <FileList
        files={files}
        onRemove={(file) =>
          setDraft(
            draft(
              text,
              files.filter((one) => one !== file),
            ),
          )
        }
      />
      <div class="box">
        <FileButton accept={accepted(manifest)} onPick={attach} />
        <MessageBox
          id="message"
          label={`Message to ${agent}`}
          placeholder={`Message ${agent}…`}
          value={text}
          onInput={(next) => setDraft(draft(next, files))}
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
  const attached = await Promise.all(files.map(readFile));
  return text.trim() === '' ? attached : [{ content_type: 'text/plain', content: text }, ...attached];
}

const titleOf = (text: string, files: readonly File[]): string =>
  text.trim().slice(0, 60) || files.map(({ name }) => name).join(', ');

/** For the picker of files; an agent that takes everything does not restrict it. */
function accepted(manifest: AgentManifest | undefined): string | undefined {
  const types = manifest?.input_content_types ?? ['*/*'];
  return types.includes('*/*') ? undefined : types.join(',');
}
