import fc from 'fast-check';
import { concat, from, lastValueFrom, type Observable, of, throwError, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { AgentOutput } from '../../src/core/agent.ts';
import { joinPairs } from '../../src/engine/execution/pair-joiner.ts';
import { anyText } from '../support/unicode.ts';

type Output = AgentOutput | undefined;

const joined = (output: Observable<Output>): Promise<Output[]> =>
  lastValueFrom(joinPairs(() => output as Observable<AgentOutput>).pipe(toArray()));

const plain = { content_type: 'text/plain', content: 'b' };
const image = { content_type: 'image/png', content_url: 'https://a/b.png' };
const progress = { type: 'generic' as const, generic: { kind: 'progress' } };
const message = { role: 'agent', parts: [image] };

it('an empty text is no output, as a token or as a part', async () => {
  const named = { content: '', name: 'empty.txt' };
  expect(await joined(from(['', 'a', { content: '' }, named, undefined, { ...plain, content: '' }]))).toEqual([
    'a',
    named,
    undefined,
  ]);
});

describe('a surrogate pair that an agent cuts', () => {
  it.each<[string, Output[], Output[]]>([
    ['over two texts', ['\ud83d', '\ude00'], ['😀']],
    ['in the middle of texts', ['a\ud83d', '\ude00b'], ['a', '😀b']],
    ['again and again', ['😀\ud83d', '\ude00\ud83d', '\ude01\ud83d', '\ude02'], ['😀', '😀', '😁', '😂']],
    ['around an empty text', ['\ud83d', '', '\ude00'], ['😀']],
    ['over a text and a part', ['\ud83d', { content: '\ude00b' }], ['😀b']],
    ['over two parts', [{ content: 'a\ud83d' }, { content_type: 'text/plain', content: '\ude00' }], ['a', '😀']],
    ['around nothing', ['\ud83d', undefined, '\ude00'], [undefined, '😀']],
    ['around a generic event', ['\ud83d', progress, '\ude00'], [progress, '😀']],
  ])('is joined: %s', async (_, output, expected) => {
    expect(await joined(from(output))).toEqual(expected);
  });

  it.each<[string, Output[], Output[]]>([
    ['the end', ['a\ud83d'], ['a', '\ufffd']],
    ['another text', ['\ud83d', 'a'], ['\ufffd', 'a']],
    ['another first half', ['\ud83d', '\ud83d', '\ude00'], ['\ufffd', '😀']],
    ['a part', ['\ud83d', image, 'a'], ['\ufffd', image, 'a']],
    ['a message', ['\ud83d', message], ['\ufffd', message]],
    ['a part with a name', ['\ud83d', { ...plain, name: 'a' }], ['\ufffd', { ...plain, name: 'a' }]],
  ])('has U+FFFD for a first half that is followed by %s', async (_, output, expected) => {
    expect(await joined(from(output))).toEqual(expected);
  });

  it.each<[string, Output[], Output[]]>([
    ['a first half inside', ['a\ud83db'], ['a\ufffdb']],
    ['a second half', ['\ude00b', 'a\ude00'], ['\ufffdb', 'a\ufffd']],
    ['halves in the wrong order', ['\ude00\ud83d', '\ude00'], ['\ufffd', '😀']],
    ['a half in a part', [{ content: '\ude00' }], ['\ufffd']],
  ])('has U+FFFD for %s of a text', async (_, output, expected) => {
    expect(await joined(from(output))).toEqual(expected);
  });

  it('loses its first half where the agent fails', async () => {
    const failed = concat(
      of('a\ud83d'),
      throwError(() => new Error('no luck')),
    );
    const got: Output[] = [];
    const error = await new Promise((resolve) => {
      joinPairs(() => failed).subscribe({ next: (output) => got.push(output), error: resolve });
    });
    expect(error).toEqual(new Error('no luck'));
    expect(got).toEqual(['a']);
  });

  it('is joined wherever a text is cut', async () => {
    const text = anyText();
    await fc.assert(
      fc.asyncProperty(text, fc.array(fc.nat(8)), async (whole, sizes) => {
        const cut: string[] = [];
        let at = 0;
        for (const size of sizes) {
          cut.push(whole.slice(at, at + size));
          at += size;
        }
        const output = await joined(from([...cut, whole.slice(at)]));
        expect(output.join('')).toBe(whole);
        expect(output.every((one) => typeof one === 'string' && !/\p{Cs}/u.test(one))).toBe(true);
      }),
    );
  });
});
