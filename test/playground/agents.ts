import { concat, concatMap, from, map, of } from 'rxjs';
import type { Agent, MessagePart } from '../../src/index.ts';
import { agent } from '../support/agents.ts';

const drop = `<svg xmlns="http://www.w3.org/2000/svg" width="240" height="120"><rect width="240" height="120" fill="#cfe8ee"/>
<path d="M0 80c40-30 80-30 120 0s80 30 120 0v40H0z" fill="#136a7b"/></svg>`;
const picture = Buffer.from(drop).toString('base64');
const text =
  'Rivers carry **snow** to the sea.\n\n| Place | Height |\n| --- | --- |\n| spring | 1,800 m |\n| mouth | 0 m |\n';

const parts: readonly MessagePart[] = [
  {
    metadata: {
      kind: 'trajectory',
      message: 'Looked it up.',
      tool_name: 'atlas',
      tool_input: { river: 'Inn' },
      tool_output: { rises: 'Maloja' },
    },
  },
  { content: text },
  {
    metadata: {
      kind: 'citation',
      start_index: 0,
      end_index: 33,
      title: 'A book of rivers',
      url: 'https://example.com/rivers',
      description: 'Page 12',
    },
  },
  { name: 'drop.svg', content_type: 'image/svg+xml', content_encoding: 'base64', content: picture },
  { name: 'rivers.json', content_type: 'application/json', content: '{"inn":517,"rhine":1230}' },
  { name: 'map.pdf', content_type: 'application/pdf', content_url: 'https://example.com/map.pdf' },
];

/** Emits one part of each kind. */
export const showcase = agent('showcase', () =>
  from([{ type: 'generic' as const, generic: { progress: 0.5 } }, ...parts]),
);

/** Awaits a reply with a schema, and emits it. */
export const order: Agent = agent('order', (_, context) =>
  context
    .await('What shall I order?', {
      schema: {
        type: 'object',
        required: ['item', 'amount'],
        properties: {
          item: { type: 'string', enum: ['apples', 'pears'], title: 'Item' },
          amount: { type: 'integer', minimum: 1, title: 'Amount', description: 'Boxes' },
          gift: { type: 'boolean', title: 'As a gift' },
          notes: { type: 'array', items: { type: 'string' }, title: 'Notes' },
        },
      },
    })
    .pipe(map(({ message }) => `Ordered: ${message.parts[0]?.content}`)),
);

const field = {
  from: { type: 'string', title: 'Place' },
  day: { type: 'string', format: 'date', title: 'Day' },
  at: { type: 'string', format: 'time', title: 'Time' },
  nights: { type: 'integer', minimum: 1, maximum: 30, title: 'Nights' },
  mail: { type: 'string', format: 'email', title: 'E-mail' },
  meals: { type: 'array', minItems: 1, items: { enum: ['breakfast', 'lunch', 'dinner'] }, title: 'Meals' },
  insured: { type: 'boolean', title: 'Insured' },
  passenger: {
    type: 'object',
    title: 'Second passenger',
    required: ['name'],
    properties: { name: { type: 'string', title: 'Name' } },
  },
};

/** Awaits a reply with a field of each kind, and emits it. */
export const travel: Agent = agent('travel', (_, context) =>
  context
    .await('Where to?', {
      schema: { type: 'object', required: ['from', 'day', 'nights', 'mail', 'meals', 'insured'], properties: field },
    })
    .pipe(map(({ message }) => `Booked: ${message.parts[0]?.content}`)),
);

/** Asks three questions in a row: for a text, for yes or no, and for a boolean. */
export const interview: Agent = agent('interview', (_, context) =>
  concat(
    context.await('What is your name?'),
    context.await('Shall I go on? Answer yes or no.'),
    context.await('Is that all?', { schema: { type: 'boolean' } }),
  ).pipe(map(({ message }) => `Got ${message.parts[0]?.content}. `)),
);

/** Asks for three texts in a row, and emits a text after each. */
export const threeTexts: Agent = agent('three-texts', (_, context) =>
  concat(context.await('First?'), context.await('Second?'), context.await('Third?')).pipe(map(() => 'Thanks. ')),
);

/** Emits the names, types and contents of its input. */
export const listParts = agent('list-parts', (input) =>
  from(input).pipe(
    concatMap(({ parts }) => parts),
    concatMap(({ name, content_type, content_encoding, content = '' }) =>
      of(`${name ?? 'text'} ${content_type} ${content_encoding ?? 'plain'} ${content}; `),
    ),
  ),
);
