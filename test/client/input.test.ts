import { fileOf } from 'rivulet/client';
import { describe, expect, it } from 'vitest';
import { type Input, type Reply, toMessages, toReply } from '../../src/client/input.ts';

const text = (content: string) => ({ content_type: 'text/plain', content });
const image = { content_type: 'image/png', content_url: 'https://example.com/a.png' };
const message = { role: 'agent/chat', parts: [text('Earlier')] };

describe('the input of a run', () => {
  it.each<[string, Input, object[]]>([
    ['a string is a message', 'Hi', [{ role: 'user', parts: [text('Hi')] }]],
    ['a part is a message', image, [{ role: 'user', parts: [image] }]],
    ['a message is itself', message, [message]],
    ['a message without parts is a message', { parts: [] }, [{ parts: [] }]],
    ['texts and parts in a row are one message', ['See:', image], [{ role: 'user', parts: [text('See:'), image] }]],
    [
      'a message ends the row',
      ['a', message, 'b', image, message],
      [{ role: 'user', parts: [text('a')] }, message, { role: 'user', parts: [text('b'), image] }, message],
    ],
    ['an empty string is a text', '', [{ role: 'user', parts: [text('')] }]],
    ['nothing is nothing, for the server to refuse', [], []],
  ])('%s', (_what, input, messages) => {
    expect(toMessages(input)).toEqual(messages);
  });
});

describe('a reply', () => {
  it.each<[string, Reply, object]>([
    ['of a string', 'yes', { role: 'user', parts: [text('yes')] }],
    ['of a part', image, { role: 'user', parts: [image] }],
    ['of several', ['yes', image], { role: 'user', parts: [text('yes'), image] }],
    ['of nothing', [], { role: 'user', parts: [] }],
    ['that is a message already', message, message],
  ])('%s is one message', (_what, reply, message) => {
    expect(toReply(reply)).toEqual(message);
  });
});

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
