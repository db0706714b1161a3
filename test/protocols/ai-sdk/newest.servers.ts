import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { resumingFetch } from '../../../src/client/ai-sdk.ts';
import { type Served, serve } from '../../support/serve.ts';
import { showcase } from './agents.ts';
import { type Chat, type ChatOptions, openChatOf, type Sdk } from './chats.ts';
import { bytesOf, type Cut, cutting, shown, turnOf } from './cuts.ts';

// They ask for Node 22, and run on 20 as well; as dependencies of this project they would warn at each installation.
const folder = resolve(import.meta.dirname, '../newest-clients');
const packageAt = (path: string): string => join(folder, 'node_modules', path);

interface Workflow {
  readonly WorkflowChatTransport: new (options: object) => object;
}

describe('the newest clients of the AI SDK', () => {
  let sdk: Sdk;
  let workflow: Workflow;

  beforeAll(async () => {
    if (!existsSync(packageAt('.package-lock.json'))) await promisify(execFile)('npm', ['ci'], { cwd: folder });
    sdk = await import(packageAt('ai/dist/index.js'));
    workflow = await import(packageAt('@ai-sdk/workflow/dist/client.js'));
  });

  const open = (served: Served, more: Partial<ChatOptions> = {}): Chat =>
    openChatOf(sdk, { api: `${served.url}/ai/showcase`, id: crypto.randomUUID(), ...more });

  it('resume a turn after a reload, and answer its question', async () => {
    const served = await serve([showcase]);
    const left = open(served);
    await left.sendMessage({ text: 'the sky' });
    const { messages } = await (await served.get(`/ai/showcase/${left.id}`)).json();
    const chat = open(served, { id: left.id, messages, body: { approvals: true } });
    await chat.resumeStream();
    expect(chat.messages).toEqual(left.messages);
    const call = chat.lastMessage?.parts.find(({ toolName }) => toolName === 'await');
    await chat.addToolResult({ tool: 'await', toolCallId: call?.toolCallId, output: true });
    await expect.poll(() => chat.lastMessage?.parts.at(-1)?.text).toContain('0 1 2 3 4');
  });

  it.each([
    ['approved', true, 'output-available'],
    ['denied', false, 'output-denied'],
  ])('ask for an approval, which is %s', async (_, approved, state) => {
    const chat = open(await serve([showcase]), { body: { approvals: true } });
    await chat.sendMessage({ text: 'the sky' });
    const question = () => chat.lastMessage?.parts.find(({ toolName }) => toolName === 'await');
    expect(question()).toMatchObject({ state: 'approval-requested' });
    await chat.addToolApprovalResponse?.({ id: question()?.toolCallId, approved });
    await expect.poll(() => chat.lastMessage?.parts.at(-1)?.text).toContain('0 1 2 3 4');
    expect([question()?.state, chat.error]).toEqual([state, undefined]);
  });

  it.each<Cut>(['break', 'end'])('with resumingFetch show the same wherever a turn is cut (%s)', async (cut) => {
    const served = await serve([showcase]);
    const whole = await turnOf(open(served));
    const bytes = await bytesOf(served.url, whole);
    for (let n = 0; n < 40; n += 1) {
      const every = 1 + Math.floor((bytes * n) / 60);
      const fetch = resumingFetch({ fetch: cutting([every, every, -2, every, every], cut), delay: 1 });
      expect(shown(await turnOf(open(served, { fetch }))), `cut after ${every} bytes`).toEqual(shown(whole));
    }
  });

  it.each<Cut>(['break', 'end'])(
    'with WorkflowChatTransport show the same wherever a turn is cut (%s)',
    async (cut) => {
      const served = await serve([showcase]);
      const api = `${served.url}/ai/showcase`;
      const transport = (fetch: typeof globalThis.fetch): object =>
        new workflow.WorkflowChatTransport({
          api,
          fetch,
          // It sends neither the id of the chat nor a content type by itself.
          prepareSendMessagesRequest: ({ id, messages, trigger, messageId }: Record<string, unknown>) => ({
            body: { id, messages, trigger, messageId },
            headers: { 'Content-Type': 'application/json' },
          }),
        });
      // It writes each break to the console.
      const log = vi.spyOn(console, 'error').mockImplementation(() => {});
      onTestFinished(() => log.mockRestore());
      const whole = await turnOf(open(served, { transport: transport(fetch) }));
      const bytes = await bytesOf(served.url, whole);
      let count = 0;
      for (let n = 0; n < 40; n += 1) {
        const every = 400 + Math.floor((bytes * n) / 100);
        const cuts = cutting([every, every, every], cut);
        const chat = await turnOf(open(served, { transport: transport(cuts) }));
        expect(shown(chat), `cut after ${every} bytes`).toEqual(shown(whole));
        count += cuts.state.cuts;
      }
      expect(count).toBeGreaterThan(40);
    },
  );
});
