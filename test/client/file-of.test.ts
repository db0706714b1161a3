import { fileOf } from 'rivulet/client';
import { describe, expect, it } from 'vitest';

describe('a file of a browser', () => {
  it('of text is a part with its text, name and type', async () => {
    expect(await fileOf(new File(['a,b\n'], 'sales.csv', { type: 'text/csv' }))).toEqual({
      name: 'sales.csv',
      content_type: 'text/csv',
      content: 'a,b\n',
    });
  });

  it('of other bytes is base64', async () => {
    expect(await fileOf(new File([Uint8Array.of(0xff, 0x00)], 'a.png', { type: 'image/png' }))).toEqual({
      name: 'a.png',
      content_type: 'image/png',
      content_encoding: 'base64',
      content: '/wA=',
    });
  });

  it('whose type the browser does not know has a type for text or bytes', async () => {
    expect(await fileOf(new File(['x'], 'notes'))).toMatchObject({ content_type: 'text/plain' });
    expect(await fileOf(new File([Uint8Array.of(0xff)], 'data'))).toMatchObject({
      content_type: 'application/octet-stream',
    });
  });
});
