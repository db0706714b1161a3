/** One event as httpx-sse passes it to ACP's Python client. */
export interface PythonEvent {
  readonly id: string;
  readonly data: string;
}

/**
 * Reads a stream as httpx-sse 0.4 does. It differs from the standard in one point: once an id was seen, or if the block
 * has a `retry`, a blank line is an event, even without data. ACP's Python client parses the data of each event as
 * JSON, and fails at the first one that is not JSON.
 */
export function readAsPython(text: string): PythonEvent[] {
  const events: PythonEvent[] = [];
  let [id, retry, data]: [string, string | undefined, string[]] = ['', undefined, []];
  // An incomplete line is kept for later. httpx breaks lines at these characters as well.
  for (const line of text.split(/\r\n|[\r\n\u0085\u2028\u2029]/).slice(0, -1)) {
    const [, field = '', value = ''] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (line !== '') {
      if (field === 'id') id = value;
      if (field === 'data') data.push(value);
      if (field === 'retry') retry = value;
    } else if (id !== '' || data.length > 0 || retry !== undefined) {
      events.push({ id, data: data.join('\n') });
      [retry, data] = [undefined, []];
    }
  }
  return events;
}
