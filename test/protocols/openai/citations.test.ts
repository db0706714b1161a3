import { from } from 'rxjs';
import { describe, expect, it } from 'vitest';
import { type Agent, type AgentOutput, citation, file, type MessagePart, trajectory } from '../../../src/index.ts';
import { placeOf, withLink } from '../../../src/protocols/openai/link-places.ts';
import { agent } from '../../support/agents.ts';
import { type Served, serveApi } from '../../support/serve.ts';

const picture: MessagePart = { content_type: 'image/png', content_url: 'https://example.com/a.png' };
const picturesLink = '\n\n![a.png](https://example.com/a.png)\n\n';
const notesLink = '\n\n[notes.txt](data:text/plain;base64,UGFnZSAz)\n\n';
const notes = 'Page 3';
const source = (start_index: number, end_index: number): MessagePart =>
  citation({ url: 'https://example.com/', start_index, end_index });
const text = (content: string): MessagePart => ({ content_type: 'text/plain', content });

/** Two files, one of which has text that counts, between three sentences; and what a citation of each place cites. */
const sentences = ['The "first".\n', 'The second.', 'The third.'] as const;
const [first, second, third] = sentences;
const parts = [text(first), picture, text(second), file('notes.txt', notes), text(third)];
const secondAt = first.length;
const notesAt = secondAt + second.length;
const thirdAt = notesAt + notes.length;
const end = thirdAt + third.length;
const cited: [from: number, to: number, text: string][] = [
  [0, secondAt, first],
  [4, 11, '"first"'],
  [secondAt, notesAt, second],
  [notesAt, thirdAt, notesLink],
  [notesAt + 1, notesAt + 3, notesLink],
  [thirdAt, end, third],
  [0, notesAt, `${first}${picturesLink}${second}`],
  [4, secondAt + 3, `"first".\n${picturesLink}The`],
  [0, end, `${first}${picturesLink}${second}${notesLink}${third}`],
];
const citations = cited.map(([from, to]) => source(from, to));

interface Annotation {
  readonly start_index: number;
  readonly end_index: number;
}

interface Item {
  readonly id: string;
  readonly type: string;
  readonly content: [{ readonly text: string; readonly annotations: Annotation[] }];
}

const serve = (agents: Agent[]): Promise<Served> => serveApi(agents, { protocols: ['openai'] });

async function chat(served: Served): Promise<[text: string, annotations: Annotation[]]> {
  const asked = { model: 'cites', messages: [{ role: 'user', content: 'go' }] };
  const { message } = (await (await served.post('/v1/chat/completions', asked)).json()).choices[0];
  const sources: { url_citation: Annotation }[] = message.annotations;
  return [message.content, sources.map(({ url_citation }) => url_citation)];
}

async function streamedChat(served: Served): Promise<[text: string, annotations: Annotation[]]> {
  const asked = { model: 'cites', messages: [{ role: 'user', content: 'go' }], stream: true };
  const frames = (await (await served.post('/v1/chat/completions', asked)).text()).split('\n\n');
  const deltas = frames
    .filter((frame) => frame.startsWith('data: {'))
    .flatMap((frame) => JSON.parse(frame.slice('data: '.length)).choices)
    .map(({ delta }) => delta);
  const sources: { url_citation: Annotation }[] = deltas.flatMap(({ annotations = [] }) => annotations);
  return [deltas.map(({ content = '' }) => content).join(''), sources.map(({ url_citation }) => url_citation)];
}

async function response(served: Served): Promise<[text: string, annotations: Annotation[]]> {
  const { output } = await (await served.post('/v1/responses', { model: 'cites', input: 'go' })).json();
  const { text, annotations } = output.at(-1).content[0];
  return [text, annotations];
}

const slices = ([text, annotations]: [string, Annotation[]]): string[] =>
  annotations.map(({ start_index, end_index }) => text.slice(start_index, end_index));

describe('a citation of a message with files', () => {
  it.each([
    ['Chat Completions', chat],
    ['streamed Chat Completions', streamedChat],
    ['Responses', response],
  ])('has in %s the place before, after or around the links that stand for the files', async (_, answer) => {
    const wanted = cited.map(([, , text]) => text);
    const whole = await serve([agent('cites', () => from([{ role: 'agent', parts: [...parts, ...citations] }]))]);
    expect(slices(await answer(whole))).toEqual(wanted);
    const loose = await serve([agent('cites', () => from([...parts, ...citations]))]);
    expect(slices(await answer(loose))).toEqual(wanted);
    const before = { role: 'agent', parts: [text('Before.'), picture, ...parts] };
    const later = await serve([
      agent('cites', () => from([before, { role: 'agent', parts: [...parts, ...citations] }])),
    ]);
    expect(slices(await answer(later))).toEqual(wanted);
  });

  it('has its place while the message goes on', async () => {
    const growing = [
      text(first),
      source(0, secondAt),
      picture,
      source(0, secondAt),
      text(second),
      source(secondAt, notesAt),
    ];
    const served = await serve([agent('cites', () => from(growing))]);
    for (const answer of [chat, streamedChat, response]) {
      expect(slices(await answer(served))).toEqual([first, first, second]);
    }
  });

  it('is in Responses that of the message that has its text, also after an item of another type', async () => {
    const image = { content_type: 'image/png', content_encoding: 'base64', content: 'AAAA' } as const;
    const tool = trajectory({ tool_name: 'search', tool_input: {} });
    const imageAt = first.length;
    const sources = [
      source(4, 11),
      source(0, imageAt),
      source(4, imageAt),
      source(imageAt, imageAt + 3),
      source(imageAt + 4, imageAt + second.length),
    ];
    const [before, after] = [sources.slice(0, 2), sources.slice(2)];
    const said = [text(first), image, ...before, text(second), tool, ...after, text(third), ...before];
    for (const output of [said, [{ role: 'agent', parts: said }]]) {
      const served = await serve([agent('cites', () => from<AgentOutput[]>(output))]);
      const frames = (
        await (await served.post('/v1/responses', { model: 'cites', input: 'go', stream: true })).text()
      ).split('\n\n');
      const events: { type: string; item_id: string; response: { output: Item[] } }[] = frames
        .filter((frame) => frame.startsWith('event: '))
        .map((frame) => JSON.parse(frame.slice(frame.indexOf('data: ') + 'data: '.length)));
      const messages = events.at(-1)?.response.output.filter(({ type }) => type === 'message') ?? [];
      expect(messages.map(({ content: [part] }) => slices([part.text, part.annotations]))).toEqual([
        ['"first"', first, '"first".\n', '"first"', first],
        ['The', 'second.'],
        [],
      ]);
      const [one, two] = messages.map(({ id }) => id);
      expect(events.filter(({ type }) => type.endsWith('annotation.added')).map(({ item_id }) => item_id)).toEqual([
        one,
        one,
        one,
        two,
        two,
        one,
        one,
      ]);
      const { id } = JSON.parse(frames[0]?.slice(frames[0].indexOf('data: ') + 6) ?? '').response;
      expect((await (await served.get(`/v1/responses/${id}`)).json()).output).toEqual(events.at(-1)?.response.output);
    }
  });

  it('has its place after more text than is kept in pieces, and after more links than are kept', async () => {
    const many = Array.from({ length: 120 }, () => [text('é"\n'.repeat(20)), picture]).flat();
    const length = 120 * 60;
    const served = await serve([
      agent('cites', () => from([...many, text('The end.'), source(length, length + 8), source(0, 60)])),
    ]);
    for (const answer of [chat, streamedChat, response]) {
      const [last, start] = slices(await answer(served));
      expect(last).toBe('The end.');
      expect(start).toHaveLength(60);
    }
  });
});

describe('the places in a text', () => {
  it('are those of the links that a state has, also where a later state has more', () => {
    const first = withLink([], { at: 4, chars: 0, more: '[a]'.length });
    const second = withLink(first, { at: 4, chars: 0, more: '[bc]'.length });
    expect([placeOf(first, 2, 'end', 3), placeOf(first, 4, 'start', 3)]).toEqual([2, 7]);
    expect([placeOf(second, 2, 'end', 7), placeOf(second, 4, 'start', 7)]).toEqual([2, 11]);
  });
});
