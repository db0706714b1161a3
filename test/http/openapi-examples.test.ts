import { FormatRegistry, type TSchema } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import approve from '../../agents/approve.ts';
import chat from '../../agents/chat.ts';
import demo from '../../agents/demo.ts';
import echo from '../../agents/echo.ts';
import panel from '../../agents/panel.ts';
import summarize from '../../agents/summarize.ts';
import * as schemas from '../../src/index.ts';
import { finished, listen, type Served } from '../support/serve.ts';

interface Link {
  readonly operationId: string;
  readonly parameters: Record<string, string>;
}

interface Operation {
  readonly operationId: string;
  readonly method: string;
  readonly path: string;
  readonly requestBody?: { content: { 'application/json': { examples: Record<string, { value: object }> } } };
  readonly responses: Record<string, { links?: Record<string, Link> }>;
  readonly parameters?: { name: string; in: string; example?: string; required?: boolean }[];
}

describe('the examples of the OpenAPI document', () => {
  let served: Served;
  let document: { components: { schemas: Record<string, { examples?: unknown[] }> } };
  let operations: Map<string, Operation>;
  const operation = (id: string): Operation => {
    const found = operations.get(id);
    if (found === undefined) throw new Error(`there is no operation ${id}`);
    return found;
  };
  const examplesOf = (id: string) => operation(id).requestBody?.content['application/json'].examples ?? {};

  /** Calls an operation; the parameters are those of its path. */
  const call = async (id: string, parameters: Record<string, string> = {}, body?: object) => {
    const { method, path } = operation(id);
    const response = await fetch(`${served.url}${path.replace(/\{(\w+)\}/g, (_, name) => parameters[name] ?? '?')}`, {
      method: method.toUpperCase(),
      ...(body !== undefined && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    });
    return { response, text: await response.text() };
  };

  /** Follows a link of an answer, as OpenAPI defines it. */
  const follow = (from: string, response: Response, to: string, body?: object) => {
    const link = operation(from).responses[response.status]?.links?.[to];
    const parameters = Object.entries(link?.parameters ?? {}).map(([name, expression]) => [
      name,
      response.headers.get(expression.replace('$response.header.', '')) ?? 'none',
    ]);
    return call(link?.operationId ?? 'none', Object.fromEntries(parameters), body);
  };

  beforeAll(async () => {
    served = await listen([approve, chat, demo, echo, panel, summarize]);
    document = await (await served.get('/openapi.json')).json();
    const paths: Record<string, Record<string, Operation>> = Reflect.get(document, 'paths');
    operations = new Map(
      Object.entries(paths).flatMap(([path, item]) =>
        Object.entries(item).map(([method, found]) => [found.operationId, { ...found, method, path }]),
      ),
    );
  });
  afterAll(() => served.app.close());

  it('begin runs of the bundled agents, in each mode', async () => {
    const examples = examplesOf('createRun');
    expect(Object.keys(examples)).toEqual(['sync', 'stream', 'async', 'question']);
    const answers: Record<string, string> = {};
    for (const [name, { value }] of Object.entries(examples)) {
      const { response, text } = await call('createRun', {}, value);
      expect(response.headers.get('rivulet-warning')).toBeNull();
      const status = name === 'stream' ? text.match(/run\.\w+/g)?.at(-1) : JSON.parse(text).status;
      answers[name] = `${response.status} ${status}`;
    }
    expect(answers).toEqual({
      sync: '200 completed',
      stream: '200 run.completed',
      async: expect.stringMatching(/^202 /),
      question: '200 awaiting',
    });
  });

  it.each(['sync', 'stream'])('reply to a run that asks: %s', async (name) => {
    const asked = await call('createRun', {}, examplesOf('createRun').question?.value);
    const { response, text } = await follow(
      'createRun',
      asked.response,
      'resumeRun',
      examplesOf('resumeRun')[name]?.value,
    );
    expect([response.status, /completed/.test(text)]).toEqual([200, true]);
    expect(response.headers.get('rivulet-warning')).toBeNull();
  });

  it('lead to the run that they began, by the links of the answer', async () => {
    const { response } = await call('createRun', {}, examplesOf('createRun').async?.value);
    const run_id = response.headers.get('run-id') ?? '';
    await finished(served, run_id);
    expect(JSON.parse((await follow('createRun', response, 'getRun')).text)).toMatchObject({ run_id });
    expect(JSON.parse((await follow('createRun', response, 'listRunEvents')).text).events[0].type).toBe('run.created');
    expect((await follow('createRun', response, 'deleteRun')).response.status).toBe(204);
    const asking = await call('createRun', {}, examplesOf('createRun').question?.value);
    expect((await follow('createRun', asking.response, 'cancelRun')).response.status).toBe(202);
  });

  it('read what needs no run', async () => {
    const reads = [...operations.values()].filter(({ method, path }) => method === 'get' && !path.includes('_id}'));
    expect(reads.length).toBeGreaterThan(5);
    for (const { operationId, parameters = [] } of reads) {
      const given = parameters.filter(({ in: place }) => place === 'path').map(({ name, example }) => [name, example]);
      const { response } = await call(operationId, Object.fromEntries(given));
      expect([operationId, response.status]).toEqual([operationId, 200]);
    }
  });

  it('fit the schemas of the answers that they show', () => {
    const shown = Object.entries(document.components.schemas).filter(([, { examples }]) => examples !== undefined);
    expect(shown.length).toBeGreaterThan(8);
    expect(FormatRegistry.Has('rivulet:uuid')).toBe(true);
    for (const [name, { examples = [] }] of shown) {
      const schema: TSchema = Reflect.get(schemas, name === 'Error' ? 'ErrorBody' : name);
      for (const example of examples) expect([name, ...Value.Errors(schema, example)]).toEqual([name]);
    }
  });
});
