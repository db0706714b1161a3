import { concat, concatMap, delay, from, map, of, throwError, timer } from 'rxjs';
import {
  type Agent,
  AgentError,
  type AgentFunction,
  type AgentTool,
  defineAgent,
  file,
  type Message,
  progress,
  textOf,
} from '../../../../src/index.ts';

// The tools that the scenarios of MCP's conformance runner call, as agents.

type Schema = Record<string, unknown>;
const object = (properties: Schema = {}, required: string[] = []): Schema => ({ type: 'object', properties, required });
const text = { type: 'string' };

const tool = (name: string, run: AgentFunction, more: AgentTool = {}): Agent =>
  defineAgent(
    {
      name: name.replaceAll('_', '-'),
      description: `The fixture ${name}.`,
      metadata: { tool: { name, input_schema: object(), ...more } },
    },
    run,
  );

const argumentsIn = (input: readonly Message[]): Schema => JSON.parse(input[0]?.parts[0]?.content ?? '{}');

const pixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
const image = { content_type: 'image/png', content_encoding: 'base64', content: pixel } as const;
const sound = {
  content_type: 'audio/wav',
  content_encoding: 'base64',
  content: 'UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==',
} as const;

const asking = (name: string, question: string, schema: Schema | undefined, said: (reply: string) => string): Agent =>
  tool(
    name,
    (input, context) =>
      context
        .await(String(argumentsIn(input).message ?? question), schema === undefined ? {} : { schema })
        .pipe(map(({ message }) => said(textOf(message)))),
    name === 'test_elicitation' ? { input_schema: object({ message: text }, ['message']) } : {},
  );

const elicited = (reply: string): string => `User response: action=accept, content=${reply}`;
const nameForm = object({ name: text }, ['name']);

const simple = [
  tool('test_simple_text', () => of('This is a simple text response for testing.')),
  tool('test_image_content', () => of(image)),
  tool('test_audio_content', () => of(sound)),
  tool('test_embedded_resource', () => of(file('embedded.txt', 'This is an embedded resource content.'))),
  tool('test_multiple_content_types', () =>
    of('Multiple content types test:', image, file('data.json', '{"test":"data","value":123}', 'application/json')),
  ),
  tool('test_error_handling', () =>
    throwError(() => new AgentError('server_error', 'This tool intentionally returns an error for testing')),
  ),
  tool('test_tool_with_progress', () =>
    concat(
      from([0, 50, 100]).pipe(
        concatMap((done) => timer(50).pipe(map(() => progress(`${done} %`, { done, total: 100 })))),
      ),
      of('Done.'),
    ),
  ),
  // Longer than what a call without progress is answered with as JSON: its stream begins.
  tool('test_reconnection', () => of('Done.').pipe(delay(1_500))),
  tool('test_logging_tool', (_, context) => {
    context.log.info('For the log of the server alone.');
    return of('Done.');
  }),
  // Takes an argument that its clients repeat in a header.
  tool('test_custom_header', () => of('Done.'), {
    input_schema: object({ region: { ...text, 'x-mcp-header': 'Region' } }),
  }),
  tool('json_schema_2020_12_tool', () => of('ok'), {
    input_schema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      $defs: { address: { $anchor: 'addressDef', type: 'object', properties: { street: text, city: text } } },
      properties: {
        name: text,
        address: { $ref: '#/$defs/address' },
        contactMethod: { type: 'string', enum: ['phone', 'email'] },
        phone: text,
        email: text,
      },
      allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
      if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
      then: { required: ['phone'] },
      else: { required: ['email'] },
      additionalProperties: false,
    },
  }),
];

const asked = [
  asking('test_elicitation', 'Well?', object({ username: text, email: text }, ['username', 'email']), elicited),
  asking(
    'test_elicitation_sep1034_defaults',
    'Is this right?',
    object({
      name: { type: 'string', default: 'John Doe' },
      age: { type: 'integer', default: 30 },
      score: { type: 'number', default: 95.5 },
      status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
      verified: { type: 'boolean', default: true },
    }),
    elicited,
  ),
  asking(
    'test_elicitation_sep1330_enums',
    'Which?',
    object({
      untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
      titledSingle: {
        type: 'string',
        oneOf: [
          { const: 'value1', title: 'First Option' },
          { const: 'value2', title: 'Second Option' },
          { const: 'value3', title: 'Third Option' },
        ],
      },
      legacyEnum: {
        type: 'string',
        enum: ['opt1', 'opt2', 'opt3'],
        enumNames: ['Option One', 'Option Two', 'Option Three'],
      },
      untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
      titledMulti: {
        type: 'array',
        items: {
          anyOf: [
            { const: 'value1', title: 'First Choice' },
            { const: 'value2', title: 'Second Choice' },
            { const: 'value3', title: 'Third Choice' },
          ],
        },
      },
    }),
    elicited,
  ),
  asking(
    'test_input_required_result_elicitation',
    'What is your name?',
    nameForm,
    (reply) => `Hello, ${JSON.parse(reply).name}!`,
  ),
  asking(
    'test_input_required_result_request_state',
    'Please confirm',
    object({ ok: { type: 'boolean' } }, ['ok']),
    () => 'state-ok',
  ),
  asking(
    'test_input_required_result_tampered_state',
    'Please confirm',
    object({ ok: { type: 'boolean' } }, ['ok']),
    () => 'state-ok',
  ),
  asking('test_input_required_result_capabilities', 'What is your name?', nameForm, () => 'ok'),
  asking('test_missing_capability', 'What is your name?', nameForm, () => 'ok'),
  asking('test_streaming_elicitation', 'What is your name?', nameForm, () => 'ok'),
  tool('test_input_required_result_multi_round', (_, context) =>
    context.await('Step 1: What is your name?', { schema: nameForm }).pipe(
      concatMap(() =>
        context.await('Step 2: What is your favorite color?', { schema: object({ color: text }, ['color']) }),
      ),
      map(() => 'Done.'),
    ),
  ),
];

const tasks = [
  tool('greet', (input) => of(`Hello, ${argumentsIn(input).name}!`), { input_schema: object({ name: text }) }),
  tool('slow_compute', (input) => of('computed').pipe(delay(Number(argumentsIn(input).seconds ?? 0) * 1_000)), {
    input_schema: object({ seconds: { type: 'number' }, label: text }),
    long_running: true,
  }),
  tool('failing_job', () => throwError(() => new Error('the job failed')), { long_running: true }),
  tool(
    'confirm_delete',
    (input, context) =>
      context
        .await('Delete it?', { schema: object({ confirm: { type: 'boolean' } }, ['confirm']) })
        .pipe(map(() => `deleted ${String(argumentsIn(input).filename ?? '')}`)),
    { input_schema: object({ filename: text }), long_running: true },
  ),
];

export const fixtures: readonly Agent[] = [...simple, ...asked, ...tasks];
