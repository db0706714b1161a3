import fc from 'fast-check';
import { concat, from, lastValueFrom, type Observable, of, throwError, toArray } from 'rxjs';
import { describe, expect, it } from 'vitest';
import type { AgentOutput } from '../../src/core/agent.ts';
import { joinPairs } from '../../src/core/pair-joiner.ts';
import { anyText } from '../support/unicode.ts';

type Output = AgentOutput | undefined;

const joined = (output: Observable<Output>): Promise<Output[]> =>
  lastValueFrom(joinPairs(() => output as Observable<AgentOutput>).pipe(toArray()));

const image = { content_type: 'image/png', content_url: 'https://a/b.png' };
const progress = { type: 'generic' as const, generic: { kind: 'progress' } };
const message = { role: 'agent', parts: [image] };

describe('a surrogate pair that an agent cuts', () => {
  it.each<[string, Output[], Output[]]>([
    ['over two texts', ['\ud83d', '\ude00'], ['😀']],
    ['in the middle of texts', ['a\ud83d', '\ude00b'], ['a', '😀b']],
    ['again and again', ['😀\ud83d', '\ude00\ud83d', '\ude01\ud83d', '\ude02'], ['😀', '😀', '😁', '😂']],
    ['around an empty text', ['\ud83d', '', '\ude00'], ['', '😀']],
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
  ])('has U+FFFD for a first half that is followed by %s', async (_, output, expected) => {
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
