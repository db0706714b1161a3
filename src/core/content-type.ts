import type { Message } from '../schema/message.ts';
import { fail } from './errors.ts';

const essence = (type: string): string => (type.split(';', 1)[0] ?? '').trim().toLowerCase();

/** Whether a media type is covered by a range such as `text/*`, `*` or `application/json`. */
export function covers(range: string, type: string): boolean {
  const wanted = essence(range);
  if (wanted === '*/*' || wanted === '*') return true;
  const got = essence(type);
  return wanted.endsWith('/*') ? got.startsWith(wanted.slice(0, -1)) : got === wanted;
}

/**
 * Refuses a part that the agent does not take.
 * @throws RivuletError `content_type_refused`
 */
export function checkContentTypes(agent: string, takes: readonly string[], input: readonly Message[]): void {
  input.forEach((message, m) => {
    message.parts.forEach((part, p) => {
      const type = part.content_type ?? 'text/plain';
      if (!takes.some((range) => covers(range, type))) {
        throw fail('content_type_refused', `input[${m}].parts[${p}]`, type, agent, takes.join(', '));
      }
    });
  });
}
