/** One event as httpx-sse hands it to ACP's Python client. */
export interface PythonEvent {
  readonly id: string;
  readonly data: string;
}

/**
 * Reads a stream as httpx-sse 0.4 does, which differs from the standard in one thing: a blank line is an event, with
 * empty data where there was none, as soon as an id was seen once, or where the block has a `retry`. ACP's Python client
 * parses the data of each event as JSON and ends at the first that is none.
 */
export function readAsPython(text: string): PythonEvent[] {
  const events: PythonEvent[] = [];
  let [id, retry, data]: [string, string | undefined, string[]] = ['', undefined, []];
  // A line that has no end yet is kept for later. httpx breaks at these as well.
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
