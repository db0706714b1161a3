import { merge } from 'rxjs';
import { expect, it } from 'vitest';
import { deferred } from '../support/deferred.ts';
import { Hold } from '../support/hold.ts';
import { type Served, serve } from '../support/serve.ts';
import { asks, asksTwice, awaitingOn, give, replyTo, taken, twoNodes } from '../support/takeovers.ts';
import { headersOf, metaOf, request } from './mcp/modern.ts';

const tasks = { elicitation: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } };
const clients: [
  client: string,
  read: string,
  leave: (served: Served, run_id: string, last?: number) => Promise<Response>,
][] = [
  [
    'an MCP task',
    'input',
    ({ post }, taskId) =>
      post(
        '/mcp',
        request('tasks/update', { _meta: metaOf(tasks), taskId, inputResponses: { 1: { action: 'cancel' } } }),
        headersOf('tasks/update', taskId),
      ),
  ],
  [
    'an MCP call of an older client',
    'input',
    ({ post }, run_id) => post('/mcp', { jsonrpc: '2.0', id: `${run_id}:1`, result: { action: 'cancel' } }),
  ],
  [
    'an AG-UI run',
    'events',
    ({ post }, run_id, last) => {
      const resume = [{ interruptId: `${run_id}.${last}`, status: 'cancelled' }];
      return post('/ag-ui/asks', { threadId: 't', runId: 'left', messages: [], resume });
    },
  ],
];

it.each(clients)(
  'a question of %s that its user leaves cancels nothing where its reply comes after it was read',
  async (_, name, leave) => {
    const { a, b, reads, store } = await twoNodes(asksTwice(true), 'a', { protocols: ['mcp', 'ag-ui'] });
    const run_id = await awaitingOn(b);
    const hold = new Hold();
    reads.hold = { name, hold };
    const left = leave(a, run_id, (await store.run(run_id))?.last);
    await hold.held();
    reads.hold = undefined;
    expect(await give(b, run_id, 'yes')).toEqual(taken);
    await expect.poll(() => store.run(run_id)).toMatchObject({ status: 'awaiting' });
    hold.letGo();
    expect((await left).status).toBeLessThan(300);
    expect(await store.run(run_id)).toMatchObject({ status: 'awaiting' });
  },
);

it('a question that its AG-UI user leaves twice ends both streams with the end of the run, once its agent has stopped', async () => {
  const { promise: stopped, resolve: stop } = deferred<string>();
  const agent = asks(true, (_, context) =>
    merge(
      context.step('work', () => stopped),
      replyTo(context, 'Go on?'),
    ),
  );
  const served = await serve([agent], { protocols: ['ag-ui'] });
  const run_id = await awaitingOn(served);
  const { events } = await (await served.get(`/runs/${run_id}/events`)).json();
  const resume = [{ interruptId: `${run_id}.${events.length}`, status: 'cancelled' }];
  const leave = (runId: string) => served.post('/ag-ui/asks', { threadId: 't', runId, messages: [], resume });
  const first = leave('one');
  await expect
    .poll(() => served.get(`/runs/${run_id}`).then((answer) => answer.json()))
    .toMatchObject({ status: 'cancelling' });
  // Its stream has begun.
  const second = await leave('two');
  stop('stopped');
  for (const stream of [await first, second]) expect(await stream.text()).toContain('RUN_FINISHED');
});
