import { concat, map, of, throwError } from 'rxjs';
import { AgentError, citation, file, json, progress, trajectory } from '../../../src/index.ts';
import { agent } from '../../support/agents.ts';

/** Says something, works, asks, and goes on. */
export const talker = agent('talker', (_, context) =>
  concat(
    of('One ', '“two”\n', 'three. '),
    of(trajectory({ tool_name: 'search', tool_input: { q: 'x' }, tool_output: { hits: 2 } })),
    of(progress('half', { done: 1, total: 2 })),
    context.await('Well?').pipe(map(({ message }) => `You said ${message.parts[0]?.content}.`)),
    of(' And ', 'so ', 'on.'),
  ),
);

export const fails = agent('fails', () =>
  concat(
    of('a'),
    throwError(() => new AgentError('out_of_ink', 'There is no ink.')),
  ),
);

export const files = agent('files', () =>
  of(
    'See ',
    { content_type: 'image/png', content_encoding: 'base64', content: 'aGk=' } as const,
    { content_type: 'audio/wav', content_encoding: 'base64', content: 'aGk=' } as const,
    { content_type: 'image/png', content_url: 'https://example.com/a.png' },
    file('a.txt', 'text'),
    file('b.bin', Uint8Array.of(255, 0)),
    citation({ url: 'https://example.com/', title: 'Example' }),
  ),
);

const sumSchema = { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] };

export const adds = agent(
  'adds',
  ([message]) => {
    const { a, b } = JSON.parse(message?.parts[0]?.content ?? '{}');
    return of(json({ sum: a === 13 ? 'unlucky' : a + b }));
  },
  {
    metadata: {
      tool: {
        name: 'add_numbers',
        title: 'Add numbers',
        input_schema: {
          type: 'object',
          properties: { a: { type: 'number' }, b: { type: 'number' } },
          required: ['a', 'b'],
        },
        output_schema: sumSchema,
      },
    },
  },
);

/** Asks for what a form has: a flat object, a yes or no, and data that no form has. */
export const forms = agent('forms', ([message], context) => {
  const schemas: Record<string, Record<string, unknown>> = {
    flat: {
      type: 'object',
      properties: { name: { type: 'string', format: 'hostname' }, age: { type: 'integer', minimum: 0 } },
      required: ['name'],
    },
    yes: { type: 'boolean' },
    deep: { type: 'object', properties: { tags: { type: 'array', items: { type: 'string' } } } },
  };
  const schema = schemas[message?.parts[0]?.content ?? ''];
  return context
    .await('Well?', schema === undefined ? {} : { schema })
    .pipe(map((reply) => `${reply.message.parts[0]?.content_type} ${reply.message.parts[0]?.content}`));
});

/** Names arguments that clients repeat in headers. */
export const routed = agent('routed', ([message]) => message?.parts[0]?.content ?? '', {
  metadata: {
    tool: {
      input_schema: {
        type: 'object',
        properties: {
          region: { type: 'string', 'x-mcp-header': 'Region' },
          order: { type: 'object', properties: { count: { type: 'integer', 'x-mcp-header': 'Count' } } },
          dry: { type: 'boolean', 'x-mcp-header': 'Dry' },
        },
      },
    },
  },
});

export const long = agent(
  'long',
  (_, context) =>
    context
      .await('Go on?', { schema: { type: 'boolean' } })
      .pipe(map(({ message }) => `Done: ${message.parts[0]?.content}`)),
  { metadata: { tool: { long_running: true } } },
);
