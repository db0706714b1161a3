import { describe, expect, it } from 'vitest';
import { echo } from '../support/agents.ts';
import { ask, serve } from '../support/serve.ts';

const id = '00000000-0000-4000-8000-000000000001';

describe('fields that no schema has', () => {
  const warningFor = async (more: object, path = '/runs') => {
    const served = await serve([echo], { docs: false, playground: false });
    const response = await served.post(path, ask('echo', 'hi', more));
    return [response.status, response.headers.get('rivulet-warning')];
  };

  it('are named in a header, and change nothing else', async () => {
    expect(await warningFor({ modle: 'stream' })).toEqual([200, 'unknown field "modle" in body']);
    expect(await warningFor({ a: 1, session: { id, histroy: [] } })).toEqual([
      200,
      'unknown fields "a" in body, "histroy" in body.session',
    ]);
  });

  it.each(['sync', 'async', 'stream'])('are named in the answer of each mode: %s', async (mode) => {
    expect((await warningFor({ mode, x: 1 }))[1]).toBe('unknown field "x" in body');
  });

  it('are named in queries', async () => {
    const served = await serve([echo], { docs: false, playground: false });
    const response = await served.get('/runs?statuss=failed&limit=1');
    expect(response.headers.get('rivulet-warning')).toBe('unknown field "statuss" in query');
    expect((await served.get('/runs?status=failed')).headers.get('rivulet-warning')).toBeNull();
  });

  it('are none of a message or a part, which agents receive whole', async () => {
    const parts = [{ content: 'hi', mine: 1 }];
    expect(await warningFor({ input: [{ parts, colour: 'red' }] })).toEqual([200, null]);
  });

  it('cannot break or fill the header', async () => {
    expect((await warningFor({ 'a\r\nSet-Cookie: b=c\u{1F600}': 1 }))[1]).toBe(
      'unknown field "a\\r\\nSet-Cookie: b=c??" in body',
    );
    const many = Object.fromEntries(Array.from({ length: 900 }, (_, n) => [`${n}-${'x'.repeat(1_000)}`, n]));
    const header = String((await warningFor(many))[1]);
    expect(header).toMatch(/^unknown fields "0-x+" in body, .* and more$/);
    expect(header.length).toBeLessThan(500);
  });
});
