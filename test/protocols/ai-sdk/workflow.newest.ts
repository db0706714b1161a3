import { resolve } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { serve } from '../../support/serve.ts';
import { type Cut, cutting } from '../cutting.ts';
import { showcase } from './agents.ts';
import { openChat } from './chats.ts';
import { bytesOf, shown, turnOf } from './turns.ts';

interface Workflow {
  readonly WorkflowChatTransport: new (options: object) => object;
}
// By its path: the types of the package need the package `workflow`.
const client = resolve(import.meta.dirname, '../newest-clients/node_modules/@ai-sdk/workflow/dist/client.js');
const { WorkflowChatTransport }: Workflow = await import(client);

it.each<Cut>(['break', 'end'])(
  'a chat over WorkflowChatTransport shows the same wherever a turn is cut (%s)',
  async (cut) => {
    const served = await serve([showcase]);
    const api = `${served.url}/ai/showcase`;
    const open = (fetch: typeof globalThis.fetch) =>
      openChat('ai', {
        api,
        id: crypto.randomUUID(),
        transport: new WorkflowChatTransport({
          api,
          fetch,
          // It sends neither the id of the chat nor a content type by itself.
          prepareSendMessagesRequest: ({ id, messages, trigger, messageId }: Record<string, unknown>) => ({
            body: { id, messages, trigger, messageId },
            headers: { 'Content-Type': 'application/json' },
          }),
        }),
      });
    // It writes each break to the console.
    const log = vi.spyOn(console, 'error').mockImplementation(() => {});
    onTestFinished(() => log.mockRestore());
    const whole = await turnOf(open(fetch));
    const bytes = await bytesOf(served.url, whole);
    let count = 0;
    for (let n = 0; n < 40; n += 1) {
      const every = 400 + Math.floor((bytes * n) / 100);
      const cuts = cutting([served.url], [every, every, every], cut);
      expect(shown(await turnOf(open(cuts.fetch))), `cut after ${every} bytes`).toEqual(shown(whole));
      count += cuts.cuts();
    }
    expect(count).toBeGreaterThan(40);
  },
);
