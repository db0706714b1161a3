import { describe, expect, it } from 'vitest';
import { file } from '../../../src/index.ts';
import { inputOf, taskPartOf } from '../../../src/protocols/a2a/task-parts.ts';
import { processorTime } from '../../support/processor-time.ts';

describe('a part of an agent', () => {
  it('is text where its bytes are UTF-8, and raw where a text would change them', () => {
    const base64 = (bytes: Buffer) => ({
      content_type: 'text/csv',
      content_encoding: 'base64' as const,
      content: bytes.toString('base64'),
    });
    expect(taskPartOf(base64(Buffer.from('ü;1')))).toEqual({ text: 'ü;1', mediaType: 'text/csv' });
    const latin = Buffer.from('ü;1', 'latin1');
    expect(taskPartOf(base64(latin))).toEqual({ raw: latin.toString('base64'), mediaType: 'text/csv' });
    expect(taskPartOf(file('a.csv', latin, 'text/csv'))).toEqual({
      raw: latin.toString('base64'),
      mediaType: 'text/csv',
      filename: 'a.csv',
    });
  });
});

it('a file of text/plain has its media type where it is not a text', () => {
  const url = 'https://example.com/a';
  expect(taskPartOf({ content_type: 'text/plain', content_url: url })).toEqual({ url, mediaType: 'text/plain' });
  const latin = file('a.txt', Buffer.from('ü', 'latin1'), 'text/plain');
  expect(taskPartOf(latin)).toEqual({ raw: '/A==', mediaType: 'text/plain', filename: 'a.txt' });
  expect(taskPartOf({ content: 'a', name: 'a.txt' })).toEqual({ text: 'a', filename: 'a.txt' });
});

describe('a part of a client', () => {
  const given = (raw: string) =>
    inputOf({ messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'a' }, { raw }] }).parts[1];

  it.each([
    ['+/8=', '+/8='],
    ['-_8=', '+/8='],
    ['-_8', '+/8='],
    ['aGkh', 'aGkh'],
    ['', ''],
  ])('may have the bytes %j in any base64 of Protocol Buffers', (raw, content) => {
    expect(given(raw)).toMatchObject({ content, content_encoding: 'base64' });
  });

  it.each(['a', '!!!!', 'ab=c'])('is refused with the bytes %j', (raw) => {
    expect(() => given(raw)).toThrow('message.parts[1].raw: expected base64.');
  });

  it('is read in time that grows with its length, whatever it has', () => {
    const started = processorTime();
    expect(() => given(`${'='.repeat(150_000)}a`)).toThrow('expected base64');
    expect(given('-_8A'.repeat(150_000))).toMatchObject({ content: '+/8A'.repeat(150_000) });
    // Quadratic, the first one would take twenty seconds.
    expect(processorTime() - started).toBeLessThan(5_000);
  });
});
