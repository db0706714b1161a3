/** The agents that the checks of ACP's Python client call. */
import { setTimeout as after } from 'node:timers/promises';
import { concat, from, map, NEVER, of } from 'rxjs';
import { type Agent, AgentError, textOf } from '../../../../src/index.ts';
import { agent, askOnce, echo } from '../../../support/agents.ts';

const described = agent('described', () => of('done'), {
  metadata: {
    documentation: 'What it does.',
    created_at: '2026-01-02T03:04:05+02:00',
    author: { name: 'Ada', email: 'ada@example.com', url: 'https://example.com/ada' },
    links: [{ type: 'source-code', url: 'https://example.com/source' }],
    dependencies: [{ type: 'tool', name: 'search' }],
    capabilities: [{ name: 'Summaries', description: 'Of long texts.' }],
    tags: ['test'],
  },
});

const tokens = agent('tokens', async function* () {
  for (let n = 0; n < 200; n += 1) yield `token ${n} \u2028\u0085\r\n`;
});

/** Says nothing for longer than the time between two comments that keep its stream open. */
const slow = agent('slow', async function* () {
  yield 'one ';
  await after(300);
  yield 'two';
});

const silent = agent('silent', () => concat(of('begun'), NEVER));

const refusing = agent('refusing', () => {
  throw new AgentError('invalid_input', 'too short', ['a', 'list']);
});

const throwing = agent('throwing', () => {
  throw new TypeError('secret detail');
});

const files = agent('files', () =>
  from([
    'Here they are. ',
    { name: 'notes.txt', content_type: 'text/plain', content: 'a note' },
    { name: 'data.json', content_type: 'application/json', content: '{"results":[1,2]}' },
    { name: 'pixel.png', content_type: 'image/png', content_encoding: 'base64' as const, content: 'iVBORw0KGgo=' },
    { content_type: 'image/png', content_url: 'https://example.com/pixel.png' },
  ]),
);

const sources = agent('sources', () =>
  from([
    {
      content: 'So it is said.',
      metadata: { kind: 'citation' as const, url: 'https://example.com/', title: 'A source' },
    },
    { metadata: { kind: 'trajectory' as const, message: 'searched', tool_name: 'search', tool_input: { q: 'x' } } },
  ]),
);

/** Answers with the texts of the session so far, and counts its runs in the session's state. */
const remember = agent('remember', async (_, { session }) => {
  const texts: string[] = [];
  await session.history.pipe(map(textOf)).forEach((text) => void texts.push(text));
  const count = ((await session.state<number>()) ?? 0) + 1;
  await session.setState(count);
  return `${count}: ${texts.join(', ')}`;
});

export const agents: readonly Agent[] = [
  ...[echo, askOnce, described, tokens, slow],
  ...[silent, refusing, throwing, files, sources, remember],
];
