import { readJson } from '../../core/json.ts';

/** All that is needed to repeat a request. */
export interface HttpRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: readonly (readonly [string, string])[];
  /** JSON, or absent. */
  readonly body: string | undefined;
}

/** Characters of a body that the code includes: enough for typed text, too few for files. */
const maxBody = 64 * 1024;
/** In the place of a longer body; the reader of the code saves it there. */
const bodyFile = 'body.json';

const isStream = ({ headers }: HttpRequest): boolean =>
  headers.some(([name, value]) => name.toLowerCase() === 'accept' && value === 'text/event-stream');

const isLong = (body: string): boolean => body.length > maxBody;

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** The request as a curl command for a POSIX shell. */
export function toCurl(request: HttpRequest): string {
  const { method, url, headers, body } = request;
  const options = [
    ...(isStream(request) ? ['-N'] : []),
    // Otherwise curl would make several requests of brackets in the URL.
    ...(/[[\]{}]/.test(url) ? ['-g'] : []),
    ...(method === 'GET' ? [] : [`-X ${method}`]),
  ];
  return [
    ['curl', ...options, quote(url)].join(' '),
    // Without a value, curl would leave the header out; a semicolon sends it empty.
    ...headers.map(([name, value]) => `-H ${quote(value === '' ? `${name};` : `${name}: ${value}`)}`),
    ...(body === undefined ? [] : [`--data-binary ${quote(isLong(body) ? `@${bodyFile}` : body)}`]),
  ].join(' \\\n  ');
}

/** The request as TypeScript for Node or a browser; it prints the response as it arrives. */
export function toTypeScript(request: HttpRequest): string {
  const { method, url, headers, body } = request;
  const options = [
    ...(method === 'GET' ? [] : [`  method: ${JSON.stringify(method)},`]),
    ...(headers.length === 0 ? [] : [`  headers: ${indented(Object.fromEntries(headers))},`]),
    ...(body === undefined ? [] : [`  body: ${typeScriptBody(body)},`]),
  ];
  const call = options.length === 0 ? '' : `, {\n${options.join('\n')}\n}`;
  return [
    ...(body !== undefined && isLong(body) ? ["import { readFile } from 'node:fs/promises';\n"] : []),
    `const response = await fetch(${JSON.stringify(url)}${call});`,
    ...(isStream(request)
      ? [
          'const text = new TextDecoder();',
          'for await (const chunk of response.body ?? []) console.log(text.decode(chunk, { stream: true }));',
        ]
      : ['console.log(response.status, await response.text());']),
    '',
  ].join('\n');
}

/** As an object, which is easy to change; `__proto__` is no key in an object literal, so that body stays a text. */
function typeScriptBody(body: string): string {
  if (isLong(body)) return `await readFile('${bodyFile}', 'utf8')`;
  const value = readJson(body)?.value;
  return value === undefined || body.includes('__proto__')
    ? JSON.stringify(body)
    : `JSON.stringify(${indented(value)})`;
}

/** The request as Python, with its standard library only; it prints the response as it arrives. */
export function toPython({ method, url, headers, body }: HttpRequest): string {
  const value = body === undefined || isLong(body) ? undefined : readJson(body)?.value;
  const data =
    body === undefined
      ? undefined
      : isLong(body)
        ? `open("${bodyFile}", "rb").read()`
        : value === undefined
          ? `${JSON.stringify(body)}.encode()`
          : `json.dumps(${pythonLiteral(value, '    ')}).encode()`;
  return [
    ...(value === undefined ? [] : ['import json']),
    'import urllib.request',
    '',
    'request = urllib.request.Request(',
    `    ${JSON.stringify(url)},`,
    `    method=${JSON.stringify(method)},`,
    `    headers=${pythonLiteral(Object.fromEntries(headers), '    ')},`,
    ...(data === undefined ? [] : [`    data=${data},`]),
    ')',
    'with urllib.request.urlopen(request) as response:',
    '    for line in response:',
    '        print(line.decode(), end="", flush=True)',
    '',
  ].join('\n');
}

const indented = (value: unknown): string => JSON.stringify(value, null, 2).replaceAll('\n', '\n  ');

const pythonWords: Readonly<Record<string, string>> = { true: 'True', false: 'False', null: 'None' };

/** A JSON value as Python writes it. Texts and numbers are the same in both languages. */
function pythonLiteral(value: unknown, indent: string): string {
  const inner = `${indent}    `;
  const lines = (open: string, entries: readonly string[], close: string): string =>
    entries.length === 0
      ? open + close
      : `${open}\n${entries.map((entry) => `${inner}${entry},\n`).join('')}${indent}${close}`;
  if (Array.isArray(value)) {
    return lines(
      '[',
      value.map((entry) => pythonLiteral(entry, inner)),
      ']',
    );
  }
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).map(
      ([key, entry]) => `${JSON.stringify(key)}: ${pythonLiteral(entry, inner)}`,
    );
    return lines('{', entries, '}');
  }
  const json = JSON.stringify(value);
  return pythonWords[json] ?? json;
}
