import { useState } from 'preact/hooks';
import { ClientError, type Run } from '../../client/client.ts';
import type { AwaitRequest } from '../../schema/run.ts';
import { clock } from '../measures.ts';
import { usePlayground } from '../playground.ts';
import { initial, type Problem, problemOf, type Schema } from '../question.ts';
import { MessageView } from './message-view.tsx';
import { SchemaField } from './schema-field.tsx';

const nothing: Problem = { path: '', text: '' };

/** What a run asks, as a form: of its JSON Schema where it has one, of a text where it has none. */
export function AwaitForm({ run, request }: { run: Run; request: AwaitRequest }) {
  const { conversation } = usePlayground();
  // A schema is free-form on the wire; what of it is no schema falls back to a field for JSON.
  const schema: Schema | undefined = request.schema;
  const [value, setValue] = useState(() => (schema === undefined ? '' : initial(schema)));
  const [problem, setProblem] = useState(nothing);
  const [sending, setSending] = useState(false);

  const send = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    setProblem(nothing);
    setSending(true);
    try {
      await conversation.reply(run.run_id, {
        content_type: schema === undefined ? 'text/plain' : 'application/json',
        content: schema === undefined ? String(value) : (JSON.stringify(value) ?? 'null'),
      });
      // The form goes, and what had the focus with it.
      document.getElementById('message')?.focus();
    } catch (error) {
      setProblem(error instanceof ClientError ? problemOf(error.message) : { path: '', text: String(error) });
    } finally {
      setSending(false);
    }
  };

  return (
    <form class="await" onSubmit={send} noValidate aria-label={`${run.agent_name} asks`}>
      <MessageView message={request.message} />
      <SchemaField
        schema={schema ?? { type: 'string', title: 'Your answer' }}
        path=""
        value={value}
        onChange={setValue}
        problem={problem}
        required
      />
      <div class="row">
        <button type="submit" class="primary" disabled={sending}>
          Answer
        </button>
        {request.expires_at !== undefined && <span class="hint">It waits until {clock(request.expires_at)}.</span>}
      </div>
    </form>
  );
}
