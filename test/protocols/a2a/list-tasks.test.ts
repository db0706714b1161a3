import { describe, expect, it } from 'vitest';
import { MemoryStore } from '../../../src/stores/memory/memory-store.ts';
import { agent, echo } from '../../support/agents.ts';
import { type Served, serve } from '../../support/serve.ts';
import { TaskList } from './shapes.ts';

const version = { 'a2a-version': '1.0' };

const sent = async (own: Served, text: string, name = 'echo'): Promise<string> => {
  const message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }] };
  const { task } = await (await own.post(`/a2a/${name}/message:send`, { message }, version)).json();
  return task.id;
};
const listed = async (own: Served, query: string) =>
  TaskList.of(await (await own.get(`/a2a/echo/tasks?${query}`, version)).json());

/** Deletes a run after each list. */
class Deleting extends MemoryStore {
  gone = '';

  override async runsByStatusTime(...given: Parameters<MemoryStore['runsByStatusTime']>) {
    const rows = await super.runsByStatusTime(...given);
    await this.remove(this.gone);
    return rows;
  }
}

describe('a list of tasks', () => {
  it('ends a page early that would be large, and goes on with the next one', async () => {
    const own = await serve([echo]);
    const ids: string[] = [];
    for (let n = 0; n < 5; n += 1) ids.unshift(await sent(own, 'x'.repeat(1_200_000)));
    const pages: string[][] = [];
    for (let token = '', last = false; !last; last = token === '') {
      const { tasks, nextPageToken, totalSize } = await listed(own, `includeArtifacts=true&pageToken=${token}`);
      expect(totalSize).toBe(5);
      pages.push(tasks.map(({ id }) => id));
      token = nextPageToken;
    }
    expect(pages.flat()).toEqual(ids);
    expect(pages.map((page) => page.length)).toEqual([2, 2, 1]);
  });

  it('leaves out a task that is deleted while it is read', async () => {
    const store = new Deleting();
    const own = await serve([echo], { store });
    const kept = await sent(own, 'kept');
    store.gone = await sent(own, 'gone');
    expect((await listed(own, '')).tasks.map(({ id }) => id)).toEqual([kept]);
  });

  it('has at the address of the server those of the agent that it names as its tenant', async () => {
    const own = await serve([echo, agent('other', () => 'x')]);
    const [one, two] = [await sent(own, 'hi'), await sent(own, 'hi', 'other')];
    const list = async (params: object) => {
      const asked = { jsonrpc: '2.0', id: 1, method: 'ListTasks', params };
      const { result } = await (await own.post('/a2a/', asked, version)).json();
      return TaskList.of(result).tasks.map(({ id }) => id);
    };
    expect(await list({ tenant: 'echo' })).toEqual([one]);
    expect((await list({})).sort()).toEqual([one, two].sort());
  });

  it('is refused for an unknown agent with the error of a message to it', async () => {
    const own = await serve([echo]);
    const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hi' }] };
    const sent = await own.post('/a2a/unknown/message:send', { message }, version);
    const listed = await own.get('/a2a/unknown/tasks', version);
    expect([listed.status, await listed.json()]).toEqual([404, await sent.json()]);
    const answers = ['SendMessage', 'ListTasks'].map(async (method) => {
      const params = { tenant: 'unknown', message };
      return (await own.post('/a2a/', { jsonrpc: '2.0', id: 1, method, params }, version)).json();
    });
    const [refused, unlisted] = await Promise.all(answers);
    expect(unlisted.error).toMatchObject({ message: 'There is no agent unknown; GET /agents lists them.' });
    expect(unlisted).toEqual(refused);
  });
});
