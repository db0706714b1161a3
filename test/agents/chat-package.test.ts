import { runAgent } from 'rivulet/testing';
import { expect, it, vi } from 'vitest';
import { createChat } from '../../agents/chat.ts';

vi.mock('openai', () => {
  throw new Error("Cannot find package 'openai' imported from /srv/agents/chat.ts");
});

it('the chat says what to install where the package openai is missing', async () => {
  vi.stubEnv('OPENAI_BASE_URL', 'http://127.0.0.1:1');
  const { run } = await runAgent(await createChat(), 'Hello');
  vi.unstubAllEnvs();
  expect(run.error).toEqual({
    code: 'server_error',
    message: 'The package openai does not load; install it with "npm install openai".',
    data: { code: 'package_missing' },
  });
});
