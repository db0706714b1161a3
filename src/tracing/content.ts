import { cut } from '../core/json.ts';
import { isText } from '../core/media-types.ts';
import type { ModelMessage } from '../schema/diagnostic.ts';
import type { Message } from '../schema/message.ts';

/** Characters of JSON in one attribute. */
const maxContent = 8 * 1024;
/** What JSON adds to each message and each part, at most. */
const overhead = 96;

/** Whether spans carry messages: off by default, because messages may hold personal data. */
export function capturesContent(env: NodeJS.ProcessEnv): boolean {
  const value = env.OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT?.trim().toUpperCase();
  return value === 'SPAN_ONLY' || value === 'SPAN_AND_EVENT';
}

/**
 * Messages in the form of the GenAI conventions, as JSON. Texts are cut, and later parts left out, so that it stays
 * within the limit and can be parsed.
 */
export function contentOf(messages: readonly Message[]): string {
  let left = maxContent;
  const roles: object[] = [];
  for (const { role, parts } of messages) {
    const shown: object[] = [];
    left -= overhead;
    for (const part of parts) {
      const { content_type = 'text/plain', content_url } = part;
      left -= overhead;
      if (left <= 0) break;
      const text = cutTo((isText(part) ? part.content : content_url) ?? '', left);
      left -= JSON.stringify(text).length;
      if (isText(part)) shown.push({ type: 'text', content: text });
      else if (content_url !== undefined) shown.push({ type: 'uri', mime_type: content_type, uri: text });
      // Files would fill the attribute.
      else shown.push({ type: 'blob', mime_type: content_type });
    }
    if (shown.length > 0) roles.push({ role: role === 'user' ? role : 'assistant', parts: shown });
    if (left <= 0) break;
  }
  return JSON.stringify(roles);
}

/** The newest messages of a model call, as JSON within the limit. Of a message that alone is too long, the beginning. */
export function modelContentOf(messages: readonly ModelMessage[]): string {
  let left = maxContent;
  const kept: ModelMessage[] = [];
  for (const message of messages.toReversed()) {
    const text = JSON.stringify(message);
    left -= text.length;
    if (left > 0) kept.unshift(message);
    else if (kept.length === 0)
      kept.push({ role: message.role, parts: [{ type: 'text', content: cut(text, maxContent / 4) }] });
    if (left <= 0) break;
  }
  return JSON.stringify(kept);
}

/** The beginning of a text. Quotes and control characters take more room in JSON: such a text is cut shorter. */
function cutTo(text: string, most: number): string {
  let end = Math.min(text.length, most);
  while (end > 0 && JSON.stringify(text.slice(0, end)).length > most + 2) end = Math.floor(end / 2);
  return text.slice(0, end);
}
