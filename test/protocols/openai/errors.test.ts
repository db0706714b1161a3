import { describe, expect, it } from 'vitest';
import { serveAll } from '../../support/serve.ts';
import { type Caller, tenantNode, unlimited } from '../../support/tenants.ts';
import { all } from './agents.ts';

interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly body: { readonly error: Record<string, unknown> };
}

const answered = async (response: Response): Promise<Answered> => ({
  status: response.status,
  headers: response.headers,
  body: await response.json(),
});

const shape = {
  error: {
    message: expect.stringMatching(/./),
    type: expect.stringMatching(/./),
    param: expect.toSatisfy((param) => param === null || typeof param === 'string'),
    code: expect.stringMatching(/./),
  },
};

const run = '0199aaaa-0000-7000-8000-000000000001';

const served = await serveAll(all, { docs: false, playground: false });

describe('requests that are refused', () => {
  it('get OpenAI’s shape of an error, with the field and what to do', async () => {
    const { post, get } = served;
    const respond = (more: object) => post('/v1/responses', { model: 'echo', input: 'hi', ...more });
    const image = (source: object) =>
      respond({ input: [{ role: 'user', content: [{ type: 'input_image', ...source }] }] });
    const chat = (...messages: object[]) => post('/v1/chat/completions', { model: 'echo', messages });
    const previous_response_id = `resp_${run}`;
    const unknownModel = 'There is no agent nope; GET /v1/models lists them.';
    const refusals: [Promise<Response>, number, Record<string, unknown>][] = [
      [respond({ model: 'nope' }), 404, { code: 'model_not_found', param: 'model', message: unknownModel }],
      [respond({ model: undefined }), 400, { param: 'model', type: 'invalid_request_error' }],
      [respond({ input: undefined }), 400, { param: 'input' }],
      [respond({ input: [{ type: 'magic' }] }), 400, { type: 'invalid_request_error' }],
      [image({ image_url: {} }), 400, { param: 'input[0].content[0].image_url' }],
      [respond({ input: [] }), 400, { message: 'input: expected array length to be greater or equal to 1.' }],
      [
        post('/v1/chat/completions', {
          model: 'echo',
          messages: [
            { role: 'system', content: 'Be brief.' },
            { role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,@@' } }] },
          ],
        }),
        400,
        {
          param: 'messages[1].content[0].image_url',
          message: 'messages[1].content[0].image_url: expected a data URL whose content is base64.',
        },
      ],
      [
        respond({ input: [{ role: 'system', content: '' }] }),
        400,
        { message: 'input: expected a message; there is none with a text.' },
      ],
      [respond({ conversation: 'c', previous_response_id }), 400, { param: 'conversation' }],
      [
        respond({ input: [{ type: 'function_call_output', call_id: 'c1', output: '' }] }),
        400,
        { param: 'input[0].call_id' },
      ],
      [image({ file_id: 'file_1' }), 400, { param: 'input[0].content[0]' }],
      [image({ image_url: 'file:///etc/passwd' }), 400, { param: 'input[0].content[0].image_url' }],
      [respond({ previous_response_id }), 404, { code: 'response_not_found' }],
      [get('/v1/responses/resp_1'), 404, { code: 'response_not_found' }],
      [get(`/v1/responses/resp_${run}?stream=true`), 404, { code: 'response_not_found' }],
      [get(`/v1/responses/resp_${run}/input_items?limit=0`), 400, {}],
      [get('/v1/models/nope'), 404, { code: 'model_not_found' }],
      [get('/v1/files'), 404, { code: 'route_unknown' }],
      [post('/v1/embeddings', {}), 404, { code: 'route_unknown' }],
      [chat(), 400, { param: 'messages' }],
      [chat({ role: 'user' }), 400, {}],
      [chat({ role: 'tool', tool_call_id: 'x', content: 'y' }), 400, { param: 'messages[0].tool_call_id' }],
    ];
    for (const [response, status, error] of refusals) {
      const { body, ...got } = await answered(await response);
      expect([got.status, body]).toEqual([status, shape]);
      expect(body.error).toMatchObject(error);
    }
  });

  it('name the call that a response waits for, and refuse the answer to another', async () => {
    const { post } = served;
    const { id, output } = await (await post('/v1/responses', { model: 'ask', input: 'hi' })).json();
    const { call_id } = output.at(-1);
    const next = { model: 'ask', previous_response_id: id };
    const plain = await answered(await post('/v1/responses', { ...next, input: 'yes' }));
    expect([plain.status, plain.body.error.message]).toEqual([400, expect.stringContaining(call_id)]);
    const answer = { type: 'function_call_output', call_id, output: 'yes' };
    const more = await answered(
      await post('/v1/responses', { ...next, input: [{ role: 'user', content: 'and' }, answer] }),
    );
    expect(more.status).toBe(400);
    await (await post('/v1/responses', { ...next, input: [answer] })).text();
    const twice = await answered(await post('/v1/responses', { ...next, input: [answer] }));
    expect([twice.status, twice.headers.get('x-should-retry'), twice.body.error.code]).toEqual([
      409,
      'false',
      'not_awaiting',
    ]);
  });

  it('name the agent that waits for an answer, where it is given to another', async () => {
    const { post } = served;
    const { id, output } = await (await post('/v1/responses', { model: 'ask', input: 'hi' })).json();
    const input = [{ type: 'function_call_output', call_id: output.at(-1).call_id, output: 'yes' }];
    const answer = (model: string) => post('/v1/responses', { model, previous_response_id: id, input });
    for (const model of ['echo', 'nope']) {
      const { status, body } = await answered(await answer(model));
      expect([status, body.error.param, body.error.message]).toEqual([400, 'model', expect.stringContaining('ask')]);
    }
    expect((await answer('ask')).status).toBe(200);
  });

  it('refuse an answer that does not fit the schema of its question', async () => {
    const { post } = served;
    const { id, output } = await (await post('/v1/responses', { model: 'approval', input: 'hi' })).json();
    const { call_id } = output.at(-1);
    const answer = (text: string) =>
      post('/v1/responses', {
        model: 'approval',
        previous_response_id: id,
        input: [{ type: 'function_call_output', call_id, output: text }],
      });
    const refused = await answered(await answer('perhaps'));
    expect([refused.status, refused.body]).toEqual([400, shape]);
    expect((await (await answer('true')).json()).output[0].content[0].text).toBe('Approved: true');
  });

  it('refuse a place in a stream that no event had', async () => {
    const { post, get } = served;
    const { id } = await (await post('/v1/responses', { model: 'twice', input: 'hi' })).json();
    const at = (number: string, of = id) => get(`/v1/responses/${of}?stream=true&starting_after=${number}`);
    for (const number of ['-1', 'x', '0', '15', '100000', '1e3', '99999999999999999999']) {
      const { status, body } = await answered(await at(number));
      expect([number, status, body]).toEqual([number, 400, shape]);
      expect(body.error.message).toContain(`starting_after is not a cursor of this run: ${number}.`);
    }
    for (const unknown of [`${id}_2`, `${id}_0`, `${id}_99`, `${id}x`, id.toUpperCase()]) {
      expect((await answered(await at('16', unknown))).status).toBeGreaterThanOrEqual(400);
      expect((await answered(await get(`/v1/responses/${unknown}?stream=true`))).status).toBe(404);
      expect((await answered(await get(`/v1/responses/${unknown}`))).status).toBe(404);
    }
  });

  it('refuse a place after the end, also of a response that failed', async () => {
    const { post, get } = served;
    const { id } = await (await post('/v1/responses', { model: 'broken', input: 'hi' })).json();
    const frames = await (await get(`/v1/responses/${id}?stream=true`)).text();
    const last = Number(/"sequence_number":(\d+)\}\n\ndata: \[DONE\]/.exec(frames)?.[1]);
    const at = (number: number) => get(`/v1/responses/${id}?stream=true&starting_after=${number}`);
    expect(await (await at(last)).text()).toContain('[DONE]');
    const { status, body } = await answered(await at(last + 1));
    expect([status, body]).toEqual([400, shape]);
  });

  it('let a request wait for the response before it', async () => {
    const { post } = served;
    const { id } = await (await post('/v1/responses', { model: 'never', input: 'hi', background: true })).json();
    const next = await answered(await post('/v1/responses', { model: 'echo', input: 'hi', previous_response_id: id }));
    expect([next.status, next.headers.get('x-should-retry'), next.body.error.code]).toEqual([
      409,
      'false',
      'session_busy',
    ]);
  });

  it('take arguments and results that are nested too deep for JSON as text', async () => {
    const deep = `{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}`;
    const response = await served.post('/v1/chat/completions', {
      model: 'mirror',
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', tool_calls: [{ id: 'c1', function: { name: 'look', arguments: deep } }] },
        { role: 'tool', tool_call_id: 'c1', content: deep },
      ],
    });
    const { choices } = await response.json();
    const [, { parts }] = JSON.parse(choices[0].message.content).input;
    expect(parts[0].metadata).toMatchObject({ tool_input: { input: deep }, tool_output: { output: deep } });
  });
});

describe('what another principal has', () => {
  const post = (caller: Caller, path: string, body: object) => caller(path, { method: 'POST', body });

  it('is answered like what does not exist', async () => {
    const node = await tenantNode({ ...unlimited, docs: false, playground: false });
    const [alice, bob] = [node.as('alice'), node.as('bob')];
    const made = JSON.parse((await post(alice, '/v1/responses', { model: 'ask', input: 'hi' })).text);
    const { call_id } = made.output.at(-1);
    const own = made.id.slice('resp_'.length);
    const calls = (id: string): Promise<{ status: number; text: string }>[] => [
      bob(`/v1/responses/resp_${id}`),
      bob(`/v1/responses/resp_${id}?stream=true`),
      bob(`/v1/responses/resp_${id}?stream=true&starting_after=16`),
      bob(`/v1/responses/resp_${id}/input_items`),
      bob(`/v1/responses/resp_${id}`, { method: 'DELETE' }),
      post(bob, `/v1/responses/resp_${id}/cancel`, {}),
      post(bob, '/v1/responses', { model: 'echo', input: 'hi', previous_response_id: `resp_${id}` }),
    ];
    // Of the same time, so that both are of the same age.
    const other = `${own.slice(0, -12)}000000000000`;
    const [foreign, unknown] = [await Promise.all(calls(own)), await Promise.all(calls(other))];
    const plain = (answers: { status: number; text: string }[], id: string) =>
      answers.map(({ status, text }) => [status, text.replaceAll(id, 'ID')]);
    expect(plain(foreign, own)).toEqual(plain(unknown, other));
    expect(foreign.every(({ status }) => status === 404)).toBe(true);
    // An answer to a call of another is a history of bob's own.
    const answer = { type: 'function_call_output', call_id, output: 'yes' };
    const call = { type: 'function_call', call_id, name: 'ask_user', arguments: '{}' };
    const stolen = await post(bob, '/v1/responses', {
      model: 'echo',
      input: [{ role: 'user', content: 'hi' }, call, answer],
    });
    expect(JSON.parse(stolen.text).id).not.toContain(own);
    const kept = JSON.parse((await alice(`/v1/responses/${made.id}`)).text);
    expect(kept).toEqual(made);
  });

  it('is refused without credentials, in OpenAI’s shape', async () => {
    const node = await tenantNode({ ...unlimited, docs: false, playground: false });
    const refused = await node.as('unknown')('/v1/models');
    expect([refused.status, JSON.parse(refused.text)]).toEqual([401, shape]);
    expect(JSON.parse(refused.text).error.type).toBe('authentication_error');
  });
});
