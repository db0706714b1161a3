import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { artifactOf } from '../../src/playground/conversation/artifact.tsx';

beforeAll(() => void vi.stubGlobal('location', new URL('http://rivulet.test/')));
afterAll(() => void vi.unstubAllGlobals());

const svg = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(document.domain)</script></svg>';
const base64 = Buffer.from(svg).toString('base64');

describe('an artifact', () => {
  it.each([
    ['image/svg+xml', 'plain', svg],
    ['image/svg+xml; charset=utf-8', 'base64', base64],
    ['text/html', 'plain', svg],
    ['image/png', 'base64', base64],
  ] as const)(
    'is saved with a type that browsers do not display: %s, %s',
    async (content_type, content_encoding, content) => {
      const { bytes } = artifactOf({ name: 'a', content_type, content_encoding, content });
      expect(bytes?.type).toBe('application/octet-stream');
      expect(await bytes?.text()).toBe(svg);
    },
  );

  it('that is an image is shown as a data URL, which has no origin', () => {
    expect(artifactOf({ content_type: 'image/svg+xml', content: svg }).image).toBe(
      `data:image/svg+xml,${encodeURIComponent(svg)}`,
    );
    const typed = { content_type: 'image/svg+xml;x="<b>"', content_encoding: 'base64', content: base64 } as const;
    expect(artifactOf(typed).image).toBe(`data:image/svg+xml;base64,${base64}`);
    expect(artifactOf({ content_type: 'image/png', content: '\ud800' }).image).toBe('data:image/png,%EF%BF%BD');
  });

  it.each([
    ['text/html', svg, undefined],
    ['image/svg+xmlx', svg, undefined],
    ['image/tiff', svg, undefined],
    ['image/png', undefined, 'https://example.com/a.png'],
    ['image/png', undefined, 'javascript:alert(1)'],
  ])('is not shown as an image: %s, %s, %s', (content_type, content, content_url) => {
    const part = { content_type, ...(content && { content }), ...(content_url && { content_url }) };
    expect(artifactOf(part).image).toBe(undefined);
  });

  it('of this server is shown from its URL', () => {
    const { image } = artifactOf({ content_type: 'image/png', content_url: '/resources/1' });
    expect(image).toBe('http://rivulet.test/resources/1');
  });
});
