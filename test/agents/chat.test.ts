import type { Run } from 'rivulet';
import { runAgent } from 'rivulet/testing';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import chat from '../../agents/chat.ts';
import { deferred } from '../support/deferred.ts';
import { stoppedUrl } from '../support/ports.ts';
import { ask, eventsOf, finished, framesUntil, type Served, serveApi, textOf } from '../support/serve.ts';
import { type Answer, type Llm, type LlmRequest, startLlm } from './llm.ts';

/** The model that the chat agent talks to. */
async function model(script: (request: LlmRequest) => Answer): Promise<Llm> {
  const llm = await startLlm(script);
  onTestFinished(() => llm.close());
  setModel(llm.url);
  return llm;
}

/** The chat agent on a server, and its model. */
async function serveChat(script: (request: LlmRequest) => Answer): Promise<Served & { llm: Llm }> {
  const llm = await model(script);
  return { ...(await serveApi([chat])), llm };
}

function setModel(url: string): void {
  vi.stubEnv('OPENAI_BASE_URL', url);
  vi.stubEnv('OPENAI_API_KEY', 'key-of-the-test');
  vi.stubEnv('OPENAI_MODEL', 'model-of-the-test');
  onTestFinished(() => {
    vi.unstubAllEnvs();
  });
}

const run = async (served: Served, text: string): Promise<Run> =>
  (await served.post('/runs', ask('chat', text))).json();

/** A promise and the function that resolves it. */
function happening(): { happens: () => void; happened: Promise<void> } {
  const { promise: happened, resolve: happens } = deferred();
  return { happens, happened };
}

/** Starts a run, and resolves to its id when the client has the first token. */
async function firstToken(served: Served): Promise<string> {
  const response = await served.post('/runs', ask('chat', 'Hello', { mode: 'stream' }));
  await framesUntil(response, ({ event }) => event.type === 'message.part');
  return response.headers.get('run-id') ?? '';
}

/** A model that calculates what it is asked, then says what came out. */
const calculates = ({ body }: LlmRequest): Answer => {
  const last = body.messages.at(-1);
  return last?.role === 'tool'
    ? [`It says ${last.content}`]
    : [{ tool: 'calculate', input: { expression: last?.content } }];
};

describe('chat', () => {
  it('streams each token of the model at once', async () => {
    const firstTokenSent = happening();
    const served = await serveChat(async function* () {
      yield 'Good ';
      await firstTokenSent.happened; // until the client has the first token
      yield 'day';
      yield '!';
    });
    const run_id = await firstToken(served);
    firstTokenSent.happens();
    expect(textOf(await finished(served, run_id))).toBe('Good day!');
    const events = await eventsOf(served, run_id);
    expect(events.flatMap((event) => (event.type === 'message.part' ? event.part.content : []))).toEqual([
      'Good ',
      'day',
      '!',
    ]);
  });

  it('asks the model and shows the key that the environment names when the run starts', async () => {
    const { requests } = await model(() => ['Hi']);
    await runAgent(chat, 'Hello');
    expect(requests[0]?.headers.authorization).toBe('Bearer key-of-the-test');
    expect(requests[0]?.body.model).toBe('model-of-the-test');
  });

  it('tells the model what was said before in the session', async () => {
    const { requests } = await model(({ body }) => [`Answer ${body.messages.length}`]);
    const first = await runAgent(chat, 'First');
    await runAgent(chat, 'Second', { history: first.history });
    expect(requests.map(({ body }) => body.messages)).toEqual([
      [{ role: 'user', content: 'First' }],
      [
        { role: 'user', content: 'First' },
        { role: 'assistant', content: 'Answer 1' },
        { role: 'user', content: 'Second' },
      ],
    ]);
  });

  it('tells the model of an answer that broke off in the turn before', async () => {
    const { requests } = await model(({ body }) =>
      body.messages.length === 1 ? ['Once ', { end: 'broken' }] : ['Well.'],
    );
    const { history } = await runAgent(chat, 'Tell');
    await runAgent(chat, 'And?', { history });
    expect(requests[1]?.body.messages).toEqual([
      { role: 'user', content: 'Tell' },
      { role: 'assistant', content: 'Once \n\n[This answer ended with an error.]' },
      { role: 'user', content: 'And?' },
    ]);
  });

  it('shows the model the images of a message', async () => {
    const { requests } = await model(() => ['A dot.']);
    const picture = { content_type: 'image/png', content: 'iVBORw==', content_encoding: 'base64' as const };
    await runAgent(chat, ['What is this?', picture]);
    expect(requests[0]?.body.messages[0]?.content).toEqual([
      { type: 'text', text: 'What is this?' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw==' } },
    ]);
  });

  it('reports the tokens that the model used, those of prompt and answer apart', async () => {
    const served = await serveChat(() => ['one', 'two', 'three']);
    const { usage } = await run(served, 'Count');
    expect(usage).toEqual({ tokens: 4, input_tokens: 1, output_tokens: 3 });
    const manifest = await (await served.get('/agents/chat')).json();
    expect(manifest.status.avg_run_tokens).toBe(4); // one message, three tokens
  });

  it('aborts the request to the model when the run is cancelled', async () => {
    const served = await serveChat(async function* ({ closed }) {
      yield 'Well';
      await closed; // no more tokens
    });
    const run_id = await firstToken(served);
    await served.post(`/runs/${run_id}/cancel`);
    expect(await served.llm.requests[0]?.closed).toBe(true);
    expect((await finished(served, run_id)).status).toBe('cancelled');
  });
});

describe('chat, when the model calculates', () => {
  it('shows what went in and what came out, and lets the model go on', async () => {
    await model(calculates);
    const [call, result, answer, ...others] = (await runAgent(chat, '(0.1 + 0.2) * sqrt(16)')).parts;
    const step = { kind: 'trajectory', tool_name: 'calculate', tool_call_id: 'tool/1' };
    expect(call?.metadata).toEqual({ ...step, tool_input: { expression: '(0.1 + 0.2) * sqrt(16)' } });
    expect(result?.metadata).toMatchObject({ ...step, tool_output: { result: '1.2' } });
    expect(answer?.content).toBe('It says {"result":"1.2"}');
    expect(others).toEqual([]);
  });

  it.each([
    ['9'.repeat(201), /less or equal to 200/],
    ['1 / 0', /not a finite number/],
    ['2 +', /Unexpected end/],
    ['x = 3', /assignment is not allowed/],
    ['f(x) = f(x)', /functionassignment is not allowed/],
    ['1:1000000000', /range is not allowed/],
    ['[1, 2]', /array is not allowed/],
    ['sqrt.constructor("return process")', /constructor is not a known/],
    ['pi.value', /accessor is not allowed/],
    ['cbrt(27).sqrt(4)', /accessor is not allowed/],
    ['import({ pi: 3 })', /import is not a known|object is not allowed/],
    ['evaluate("1")', /evaluate is not a known/],
    ['combinations(1e9, 5e8)', /combinations is not a known/],
  ])('lets it know why %s is not calculated', async (expression, reason) => {
    await model(calculates);
    const [, result] = (await runAgent(chat, expression)).parts;
    expect(result?.metadata).toMatchObject({ tool_error: expect.stringMatching(reason) });
  });

  it('gives up on a model that does nothing else', async () => {
    const { requests } = await model(() => [{ tool: 'calculate', input: { expression: '1' } }]);
    const { status, error } = (await runAgent(chat, 'Loop')).run;
    expect(requests).toHaveLength(8);
    expect(status).toBe('failed');
    expect(error).toMatchObject({
      code: 'server_error',
      data: { code: 'llm_error' },
      message: expect.stringContaining('8 times'),
    });
  });
});

describe('chat fails', () => {
  it('with what to start or set when no server listens', async () => {
    const url = `${await stoppedUrl()}/v1`;
    setModel(url);
    const { status, error } = (await runAgent(chat, 'Hello?')).run;
    expect(status).toBe('failed');
    expect(error?.data?.code).toBe('llm_unreachable');
    expect(error?.message).toContain(`No LLM answers at ${url}: start Ollama`);
    expect(error?.message).toContain('OPENAI_BASE_URL');
  });

  it.each([
    [401, 'Incorrect API key provided'],
    [404, 'model "model-of-the-test" not found, try pulling it first'],
  ])('with the words of a server that answers %i', async (status, message) => {
    const { requests } = await model(() => ({ status, message }));
    const { error } = (await runAgent(chat, 'Hello')).run;
    expect(error?.data?.code).toBe('llm_error');
    expect(error?.message).toContain(`${status} ${message}`);
    expect(requests).toHaveLength(1);
  });

  it('if the answer breaks off, and keeps its beginning', async () => {
    const firstTokenSent = happening();
    const served = await serveChat(async function* () {
      yield 'I was about to';
      await firstTokenSent.happened;
      await served.llm.close();
    });
    const run_id = await firstToken(served);
    firstTokenSent.happens();
    const failed = await finished(served, run_id);
    expect(failed.error?.data?.code).toBe('llm_error');
    expect(textOf(failed)).toBe('I was about to');
  });
});

describe('an answer that is not whole', () => {
  it.each(['length', 'content_filter'] as const)('says why: %s', async (end) => {
    const served = await serveChat(() => ['Once ', { end }]);
    const { status, output } = await run(served, 'Tell');
    expect([status, output]).toMatchObject(['completed', [{ parts: [{ content: 'Once ' }], finish_reason: end }]]);
  });

  it('fails the run where it has no end mark, or is a page', async () => {
    for (const answer of [['Once ', { end: 'broken' as const }], { html: '<html>Sign in</html>' }]) {
      const { status, error } = await run(await serveChat(() => answer), 'Tell');
      expect([status, error?.data?.code]).toEqual(['failed', 'llm_error']);
    }
  });

  it('calls no tool whose input is half', async () => {
    const { llm, ...served } = await serveChat(() => [{ tool: 'calculate', input: '{"expr' }, { end: 'length' }]);
    expect(await run({ ...served }, 'Tell')).toMatchObject({ status: 'completed' });
    expect(llm.requests).toHaveLength(1);
  });
});
