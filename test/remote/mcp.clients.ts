import { AsyncLocalStorage } from 'node:async_hooks';
import { fileURLToPath } from 'node:url';
import { type AgentOutput, defineAgent, textOf } from 'rivulet';
import { type McpOptions, type McpTools, mcpTools } from 'rivulet/remote/mcp';
import { cutEverywhere, runAgent } from 'rivulet/testing';
import { lastValueFrom, Observable, toArray } from 'rxjs';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { crash } from '../adapters/crash.ts';
import { type McpHttpServer, startMcp } from './mcp-server.ts';

const overHttp = async (
  options: McpOptions = {},
  era: 'modern' | 'legacy' = 'modern',
): Promise<{ server: McpHttpServer; tools: McpTools }> => {
  const server = await startMcp(era);
  const tools = mcpTools(server.url, { allowNetworks: ['127.0.0.1'], ...options });
  onTestFinished(async () => {
    await tools.close();
    await server.close();
  });
  return { server, tools };
};

const overStdio = (): McpTools => {
  const args = ['--import', 'tsx', fileURLToPath(new URL('./mcp-stdio.ts', import.meta.url))];
  const tools = mcpTools({ command: process.execPath, args });
  onTestFinished(() => tools.close());
  return tools;
};

const call = (tools: McpTools, name: string, args = {}): Promise<AgentOutput[]> =>
  lastValueFrom(tools.call(name, args).pipe(toArray()));

/** A durable agent that calls a tool. */
const caller = (tools: McpTools, name: string, args = {}) =>
  defineAgent({ name: 'caller', description: 'Calls.' }, (_, context) => tools.call(name, args, context), {
    durable: true,
  });

/** What an async context holds for a call. */
const isCall = (value: unknown): boolean => typeof value === 'object' && value !== null && 'elicit' in value;

describe('the tools of an MCP server', () => {
  it('are listed with their schemas, over HTTP and stdio', async () => {
    const { tools } = await overHttp();
    const listed = await tools.tools();
    expect(listed.find(({ name }) => name === 'add')).toMatchObject({
      description: 'Adds two numbers.',
      input_schema: { type: 'object', properties: { a: { type: 'number' } } },
      output_schema: { type: 'object' },
      repeatable: true,
    });
    expect(await overStdio().tools()).toEqual(listed);
  });

  it.each(['HTTP', 'stdio'])(
    'return structured content, and a step that shows the call, over %s',
    async (transport) => {
      const tools = transport === 'HTTP' ? (await overHttp()).tools : overStdio();
      expect(await call(tools, 'add', { a: 1, b: 2 })).toEqual([
        { metadata: { kind: 'trajectory', tool_name: 'add', tool_input: { a: 1, b: 2 } } },
        { metadata: { kind: 'trajectory', tool_name: 'add', tool_output: { sum: 3 } } },
        { content_type: 'application/json', content: '{"sum":3}' },
      ]);
    },
  );

  it('return text, images, links and resources, after their progress', async () => {
    const { tools } = await overHttp();
    const [, first, , ...parts] = await call(tools, 'show');
    expect(first).toMatchObject({ generic: { kind: 'progress', message: 'half', done: 1, total: 2 } });
    expect(parts).toEqual([
      { content_type: 'text/plain', content: 'One.' },
      { content_type: 'image/png', content: 'iVBORw==', content_encoding: 'base64' },
      { name: 'a.pdf', content_type: 'application/pdf', content_url: 'https://example.com/a.pdf' },
      { name: 'note://1', content_type: 'text/plain', content: 'Noted.' },
    ]);
  });

  it('fail with what the tool says, and show the call', async () => {
    const { tools } = await overHttp();
    const { run, parts } = await runAgent(caller(tools, 'break'), 'Go');
    expect(run.error).toMatchObject({ message: 'It is broken.', data: { code: 'tool_failed' } });
    expect(parts.map(({ metadata }) => metadata)).toMatchObject([
      { tool_name: 'break', tool_call_id: 'mcp/1', tool_input: {} },
      { tool_name: 'break', tool_call_id: 'mcp/1', tool_error: 'It is broken.' },
    ]);
  });

  it('fail with the words of the server where it refuses the call', async () => {
    const { tools } = await overHttp();
    const { run } = await runAgent(caller(tools, 'nothing'), 'Go');
    expect(['tool_refused', 'tool_failed']).toContain(run.error?.data?.code);
    expect(run.error?.message).toContain('nothing');
  });

  it('fail where nothing comes for a time, where the result is too large, and where the server is gone', async () => {
    const { tools, server } = await overHttp({ maxResult: 1_000 });
    const codeOf = async (name: string, of = tools): Promise<unknown> =>
      (await runAgent(caller(of, name), 'Go')).run.error?.data?.code;
    // The time is also that for the connection, which a busy machine may exceed: then with a longer one.
    const limited = async (timeout: number) => codeOf('hang', (await overHttp({ timeout })).tools);
    if ((await limited(1_000)) !== 'tool_timeout') expect(await limited(20_000)).toBe('tool_timeout');
    expect(await codeOf('large')).toBe('tool_result_too_large');
    const connected = mcpTools(server.url, { allowNetworks: ['127.0.0.1'] });
    await call(connected, 'add', { a: 1, b: 2 });
    await server.close();
    expect(await codeOf('pay', connected)).toBe('tool_unreachable');
  });

  it('are not called at a private address that is not allowed', async () => {
    const { server } = await overHttp();
    const { run } = await runAgent(caller(mcpTools(server.url), 'pay'), 'Go');
    expect(run.error?.data?.code).toBe('tool_unreachable');
    expect(server.calls.pay).toBeUndefined();
  });

  it('are cancelled when the run is cancelled', async () => {
    const { tools, server } = await overHttp();
    const abort = new AbortController();
    const run = runAgent(caller(tools, 'hang'), 'Go', { signal: abort.signal });
    await expect.poll(() => server.calls.hang).toBe(1);
    abort.abort();
    expect((await run).run.status).toBe('cancelled');
    await expect.poll(() => server.cancelled).toEqual(['hang']);
  });

  it.each(['modern', 'legacy'] as const)('ask the user through the run, in the %s versions', async (era) => {
    const { tools } = await overHttp({}, era);
    const answers = [{ content_type: 'application/json', content: '{"name":"Ada"}' }];
    const { run, text, questions } = await runAgent(caller(tools, 'greet'), 'Go', { answers });
    expect(run.error).toBeUndefined();
    expect(text).toBe('Hello Ada.');
    expect(questions[0]?.message.parts[0]?.content).toBe('What is your name?');
    expect(questions[0]?.schema).toMatchObject({ properties: { name: { type: 'string' } } });
  });

  it('get the token that a function returns for the run', async () => {
    const { tools, server } = await overHttp({ token: (context) => context?.run_id ?? 'none' });
    const { run } = await runAgent(caller(tools, 'pay', { amount: 1 }), 'Go');
    expect(server.headers.at(-1)).toBe(`Bearer ${run.run_id}`);
  });

  it('get the token for the run also from inside a call of another server, which was made from inside their own', async () => {
    const seen: string[] = [];
    const next: (() => Promise<unknown>)[] = [];
    const goDeeper = (): unknown => next.shift()?.();
    const outer = await overHttp({
      token: async (context) => {
        seen.push(context?.run_id ?? 'none');
        await goDeeper();
        return 'outer';
      },
    });
    const inner = await overHttp({
      token: async () => {
        await goDeeper();
        return 'inner';
      },
    });
    await Promise.all([outer.tools.tools(), inner.tools.tools()]);
    seen.length = 0;
    next.push(
      () => call(inner.tools, 'add', { a: 1, b: 2 }),
      () => outer.tools.tools(),
    );
    const { run } = await runAgent(caller(outer.tools, 'add', { a: 1, b: 2 }), 'Go');
    expect(run.error).toBeUndefined();
    expect(next).toEqual([]);
    expect(new Set(seen)).toEqual(new Set([run.run_id]));
  });

  it('are reached again after the connection has closed', async () => {
    const { tools } = await overHttp();
    await call(tools, 'add', { a: 1, b: 2 });
    await tools.close();
    expect(await call(tools, 'add', { a: 2, b: 2 })).toHaveLength(3);
  });

  it('leave nothing with the signal of the connection, where Node 20 would keep an entry for each request', async () => {
    const any = vi.spyOn(AbortSignal, 'any');
    onTestFinished(() => any.mockRestore());
    const { tools } = await overHttp({}, 'legacy');
    for (let n = 0; n < 3; n += 1) await call(tools, 'add', { a: n, b: 2 });
    const sources = any.mock.calls.flatMap(([signals]) => [...signals]);
    expect(sources).toHaveLength(new Set(sources).size);
  });

  it('leave no async context behind for each connection: all promises of the process would become slower', async () => {
    const run = vi.spyOn(AsyncLocalStorage.prototype, 'run');
    onTestFinished(() => run.mockRestore());
    for (let n = 0; n < 3; n++) {
      const { tools } = await overHttp();
      await call(tools, 'add', { a: n, b: n });
    }
    // The three calls, and the opening of the connection within each of them, all use one storage.
    const storages = run.mock.contexts.filter((_, n) => isCall(run.mock.calls[n]?.[0]));
    expect(storages).toHaveLength(6);
    expect(new Set(storages).size).toBe(1);
  });
});

describe('a durable run that calls a tool', () => {
  it('does not repeat a call that a crash cut off', async () => {
    const { tools, server } = await overHttp();
    const begun = new Observable<void>((subscriber) => {
      void expect
        .poll(() => server.calls.hang)
        .toBe(1)
        .then(() => subscriber.next());
    });
    const { run } = await crash(caller(tools, 'hang'), begun);
    expect(run.error?.data?.code).toBe('tool_call_unknown');
    expect(server.calls.hang).toBe(1);
  });

  it('repeats a call that has no further effect', async () => {
    const { tools } = await overHttp();
    const { run } = await cutEverywhere(caller(tools, 'add', { a: 1, b: 2 }), 'Go');
    expect(run.status).toBe('completed');
  });

  it.each(['modern', 'legacy'] as const)('asks once in the %s versions, also after a crash', async (era) => {
    const { tools } = await overHttp({}, era);
    const answers = [{ content_type: 'application/json', content: '{"name":"Ada"}' }];
    const { run } = await crash(caller(tools, 'greet'), undefined, answers);
    expect(run.questions).toHaveLength(1);
    // The older versions hold the question in the call, which the crash has cut off.
    if (era === 'modern') expect(textOf(run.output)).toBe('Hello Ada.');
    else expect(run.error?.data?.code).toBe('tool_call_unknown');
  });
});
