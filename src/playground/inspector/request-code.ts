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
    ...(headers.length === 0 ? [] : [`  headers: ${indented(Object.fromEntries(headers), 2)},`]),
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
    : `JSON.stringify(${indented(value, 2)})`;
}

/** The request as Python, with its standard library only; it prints the response as it arrives. */
export const toPython = ({ method, url, headers, body }: HttpRequest): string =>
  [
    'import urllib.request',
    '',
    'request = urllib.request.Request(',
    `    ${JSON.stringify(url)},`,
    `    method=${JSON.stringify(method)},`,
    // Texts, and objects of texts, are the same in JSON and in Python.
    `    headers=${indented(Object.fromEntries(headers), 4)},`,
    ...(body === undefined ? [] : [`    data=${pythonBody(body)},`]),
    ')',
    'with urllib.request.urlopen(request) as response:',
    '    for line in response:',
    '        print(line.decode(), end="", flush=True)',
    '',
  ].join('\n');

/** As JSON in a raw text, which is easy to change. Three quotes would end the text. */
function pythonBody(body: string): string {
  if (isLong(body)) return `open("${bodyFile}", "rb").read()`;
  const value = readJson(body)?.value;
  if (value === undefined) return `${JSON.stringify(body)}.encode()`;
  return `r'''${indented(value, 4).replaceAll("''", "'\\u0027")}'''.encode()`;
}

const indented = (value: unknown, spaces: number): string =>
  JSON.stringify(value, null, spaces).replaceAll('\n', `\n${' '.repeat(spaces)}`);
