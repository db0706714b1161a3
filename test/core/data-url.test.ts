import { describe, expect, it } from 'vitest';
import { parseDataUrl, partOfDataUrl } from '../../src/core/data-url.ts';

describe('a data: URL', () => {
  const part = (url: string) => {
    const data = parseDataUrl(url);
    return data && partOfDataUrl(data, 'url');
  };

  it.each([
    ['data:image/png;base64,aGk=', { content_type: 'image/png', content_encoding: 'base64', content: 'aGk=' }],
    [
      'DATA:text/csv;charset=utf-8;BASE64,YSxi',
      { content_type: 'text/csv', content_encoding: 'base64', content: 'YSxi' },
    ],
    ['data:;base64,aGk=', { content_type: 'application/octet-stream', content_encoding: 'base64', content: 'aGk=' }],
    ['data:text/csv,a%2Cb,c', { content_type: 'text/csv', content: 'a,b,c' }],
    ['data:,hi', { content_type: 'text/plain', content: 'hi' }],
  ])('%s has its content as a part', (url, expected) => {
    expect(part(url)).toEqual(expected);
  });

  it.each(['https://example.com/data:,', 'data:text/plain', ''])('is not %j', (url) => {
    expect(parseDataUrl(url)).toBeUndefined();
  });

  it.each([
    ['data:image/png;base64,@@', 'url: expected a data URL whose content is base64'],
    ['data:text/plain,%', 'url: expected a data URL whose text is percent-encoded'],
  ])('%s is refused', (url, message) => {
    expect(() => part(url)).toThrow(message);
  });
});
