import { type MessagePart, type Run, textOf } from 'rivulet';
import { runAgent } from 'rivulet/testing';
import { describe, expect, it } from 'vitest';
import summarize from '../../agents/summarize.ts';
import { processorTime } from '../support/processor-time.ts';
import { serveApi } from '../support/serve.ts';

async function summaryOf(...parts: MessagePart[]): Promise<Run> {
  return (await runAgent(summarize, parts)).run;
}

/** What each citation says it is about, and what it points to. */
function citationsOf({ output }: Run) {
  const text = textOf(output);
  return (output[0]?.parts ?? []).flatMap(({ metadata }) =>
    metadata?.kind === 'citation'
      ? {
          source: metadata.description,
          title: metadata.title,
          points: text.slice(metadata.start_index, metadata.end_index),
        }
      : [],
  );
}

const river = `
A river carries water from the mountains to the sea. Dr. Brook has measured this river for ten years.
She likes coffee. The water of the river is cold, because it comes from ice in the mountains.
In spring the ice melts, and the river carries so much
water that it leaves its bed. Her dog is called Rex.

Fish swim up the river to the mountains. It was Tuesday. The sea is salty, but the water of the river is not.
No answer came. Without the river there would be no fish in the mountains.
`;

describe('summarize', () => {
  it('selects sentences in the order of the text', async () => {
    const run = await summaryOf({ content: river });
    const sources = citationsOf(run).map(({ source }) => source ?? '');
    expect(run.status).toBe('completed');
    expect(sources).toHaveLength(3);
    const places = sources.map((source) => river.indexOf(source));
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(sources.join()).not.toMatch(/coffee|Rex|Tuesday|No answer/);
  });

  it('cites each of its sentences: the index points into the summary, the description is the source verbatim', async () => {
    const run = await summaryOf({ content: river });
    const citations = citationsOf(run);
    expect(citations.map(({ points }) => points).join(' ')).toBe(textOf(run.output));
    for (const { source = '', points } of citations) {
      expect(river).toContain(source);
      expect(points).toBe(source.replace(/\s+/g, ' '));
    }
  });

  it('ends a sentence neither at a line break nor at "Dr."', async () => {
    const [citation] = citationsOf(await summaryOf({ content: 'Yesterday Dr. Brook\nmet Mrs. Rivers.' }));
    expect(citation).toMatchObject({
      source: 'Yesterday Dr. Brook\nmet Mrs. Rivers.',
      points: 'Yesterday Dr. Brook met Mrs. Rivers.',
    });
  });

  it('reads the text of Markdown without code, and names the heading above', async () => {
    const markdown = [
      '# Rivers',
      'A *river* carries [water](https://example.com/water) to the **sea**.',
      '```js\nconst river = "A river carries water to the sea.";\n\nconst sea = "A river carries water to the sea, too.";\n```',
      '    the river carries water to the indented code.',
      '<div>the river carries water to the HTML</div>',
      '## Fish',
      '> - Fish swim from the `river` to the sea.\n> - The reason is unknown.',
    ].join('\n\n');
    const citations = citationsOf(await summaryOf({ content_type: 'text/markdown', content: markdown }));
    expect(citations.map(({ source, title }) => [title, source])).toEqual([
      ['Rivers', 'A river carries water to the sea.'],
      ['Fish', 'Fish swim from the river to the sea.'],
    ]);
    for (const { source, points } of citations) expect(points).toBe(source);
  });

  it('reads long Markdown, and names a heading that is far above', async () => {
    const list = Array.from({ length: 400 }, (_, n) => `- The *${n}th* stone is grey.`).join('\n');
    const content = `# Stones\n\n${list}\n\n- The 400th stone is blue.\n`;
    const citations = citationsOf(await summaryOf({ content_type: 'text/markdown', content }));
    expect(citations).toHaveLength(5);
    for (const { source, title } of citations) {
      expect(source).toMatch(/^The \d+th stone is (grey|blue)\.$/);
      expect(title).toBe('Stones');
    }
  });

  it('splits sentences of languages without spaces', async () => {
    const [citation, ...others] = citationsOf(await summaryOf({ content: '川は水を海に運ぶ。魚は川の水を泳ぐ。' }));
    expect(others).toEqual([]);
    expect(['川は水を海に運ぶ。', '魚は川の水を泳ぐ。']).toContain(citation?.source);
  });

  it.each([
    ['no text', ''],
    ['no words', ' \n…!\n '],
  ])('fails with invalid_input when there is %s', async (_, content) => {
    const run = await summaryOf({ content });
    expect(run).toMatchObject({ status: 'failed', error: { code: 'invalid_input' } });
    expect(run.error?.message).toMatch(/^There is nothing to summarize: send /);
  });

  it('takes text only: other parts are refused before it runs', async () => {
    const picture = { content_type: 'image/png', content: 'iVBORw==', content_encoding: 'base64' as const };
    await expect(summaryOf(picture)).rejects.toMatchObject({ kind: 'content_type_refused', status: 422 });
  });

  it.each(['text/plain', 'text/markdown'])(
    'takes about eight times as long for eight times as much %s',
    async (content_type) => {
      const sentence = (n: number) =>
        `Sentence ${n} tells of river ${n % 7}, of mountain ${n % 11} and of *sea* ${n % 13}.`;
      const text = (count: number) =>
        Array.from({ length: count }, (_, n) => `${sentence(n)}${n % 5 ? ' ' : '\n\n'}`).join('');
      const cost = async (content: string): Promise<number> => {
        const before = processorTime();
        expect((await summaryOf({ content_type, content })).status).toBe('completed');
        return processorTime() - before;
      };
      await cost(text(2_500));
      let [small, large] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
      // CPU time, which other load changes little; a quadratic algorithm would take 64 times as much in each turn.
      for (let turn = 0; turn < 4 && !(large < small * 24); turn += 1) {
        small = Math.min(small, await cost(text(2_500)));
        large = Math.min(large, await cost(text(20_000)));
      }
      expect(large).toBeLessThan(small * 24);
    },
  );

  it('does not hold up other requests over Markdown that is built to take long', async () => {
    const served = await serveApi([summarize]);
    const parts = [{ content_type: 'text/markdown', content: '> a\n\n'.repeat(20_000) }];
    const summary = served.post('/runs', { agent_name: 'summarize', input: [{ parts }] });
    expect((await served.get('/ping')).status).toBe(200);
    expect((await (await summary).json()).status).toBe('completed');
  });
});
