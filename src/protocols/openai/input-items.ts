import { fail } from '../../core/errors.ts';
import type { Access } from '../../engine/access.ts';
import type { Message, MessagePart } from '../../schema/message.ts';
import type { RunDetails } from '../../schema/run.ts';
import { kindOf } from '../part-kinds.ts';
import { boundsAfter, eventAt, outlineOf, startOf, type Turn } from '../turns.ts';
import { callId } from './ids.ts';

interface InputQuery {
  readonly after?: string;
  readonly limit: number;
  readonly order: 'asc' | 'desc';
}

type InputItem = Readonly<Record<string, unknown>> & { readonly id: string };

/** The input of a response as a page of items, as JSON. @throws RivuletError `run_unknown`, `cursor_invalid` */
export async function inputItems(own: Access, turn: Turn, { after, limit, order }: InputQuery): Promise<string> {
  const items = turn.after === 0 ? await itemsOfRun(own, turn.run_id) : await itemsOfReply(own, turn);
  const ordered = order === 'asc' ? items : items.toReversed();
  const at = after === undefined ? -1 : ordered.findIndex(({ id }) => id === after);
  if (after !== undefined && at < 0) throw fail('cursor_invalid', 'after', after.slice(0, 100));
  const data = ordered.slice(at + 1, at + 1 + limit);
  return JSON.stringify({
    object: 'list',
    data,
    first_id: data.at(0)?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: at + 1 + limit < ordered.length,
  });
}

async function itemsOfRun(own: Access, run_id: string): Promise<InputItem[]> {
  const { input }: RunDetails = JSON.parse(await own.details(run_id));
  return input.flatMap((message, index) => itemsOfMessage(message, `${run_id}_i${index + 1}`));
}

/** The answer with which a turn begins, to the question before it. */
async function itemsOfReply(own: Access, turn: Turn): Promise<InputItem[]> {
  const { run_id } = turn;
  const { event } = startOf(turn);
  const resumed = await eventAt(own, run_id, event);
  const reply = resumed?.type === 'run.in-progress' ? resumed.run.await_resume : undefined;
  if (reply === undefined) return [];
  const output = reply.message.parts.map(contentOf);
  const { after: asked } = boundsAfter(await outlineOf(own, run_id, event), turn.after);
  const call_id = callId(run_id, asked);
  return [{ id: `fco_${run_id}_${event}`, type: 'function_call_output', status: 'completed', call_id, output }];
}

function itemsOfMessage({ role, parts }: Message, id: string): InputItem[] {
  const isUser = role === 'user';
  const items: InputItem[] = [];
  let content: object[] = [];
  const close = (): void => {
    const own = `msg_${id}${items.length === 0 ? '' : `_${items.length}`}`;
    if (content.length > 0) {
      items.push({ id: own, type: 'message', status: 'completed', role: isUser ? 'user' : 'assistant', content });
    }
    content = [];
  };
  for (const part of parts) {
    const kind = kindOf(part);
    if (kind.kind === 'tool') {
      close();
      const { tool_input = {}, tool_output, tool_error } = kind.call;
      const output = tool_error ?? (tool_output === undefined ? null : JSON.stringify(tool_output));
      const own = `mcp_${id}_${items.length}`;
      const args = JSON.stringify(tool_input);
      items.push({ id: own, type: 'mcp_call', name: kind.name, arguments: args, output, server_label: 'client' });
    } else if (kind.kind === 'reasoning') {
      close();
      items.push({
        id: `rs_${id}_${items.length}`,
        type: 'reasoning',
        summary: [{ type: 'summary_text', text: kind.text }],
      });
    } else if (isUser) content.push(contentOf(part));
    else
      content.push({ type: 'output_text', text: 'text' in kind ? kind.text : (part.content ?? ''), annotations: [] });
  }
  close();
  return items;
}

/** A part as what a client sends. */
function contentOf(part: MessagePart): object {
  const kind = kindOf(part);
  if (kind.kind !== 'file') return { type: 'input_text', text: part.content ?? '' };
  const { url, mediaType, name } = kind;
  if (mediaType.startsWith('image/')) return { type: 'input_image', image_url: url, detail: 'auto' };
  return { type: 'input_file', filename: name, [url.startsWith('data:') ? 'file_data' : 'file_url']: url };
}
