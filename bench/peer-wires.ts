/** The wire formats of the peers. */
import { randomUUID } from 'node:crypto';
import { post, type Wire } from './wires.ts';

export const agui: Wire = {
  request: (tokens, pace) =>
    post('/', {
      threadId: 'thread',
      runId: 'run',
      state: {},
      messages: [{ id: 'message', role: 'user', content: `${tokens}/${pace}` }],
      tools: [],
      context: [],
      forwardedProps: {},
    }),
  marker: '"type":"TEXT_MESSAGE_CONTENT"',
  content: (text) => `"delta":"${text}"`,
  end: '\n\n',
};

export const a2a: Wire = {
  request: (tokens, pace) =>
    post(
      '/',
      {
        jsonrpc: '2.0',
        id: 1,
        method: 'SendStreamingMessage',
        params: { message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: `${tokens}/${pace}` }] } },
      },
      { headers: 'A2A-Version: 1.0\r\n' },
    ),
  marker: '"state":"TASK_STATE_WORKING","message"',
  content: (text) => `"text":"${text}"`,
  end: '\n\n',
};

export const mastra: Wire = {
  request: (tokens, pace) =>
    post('/api/agents/tokens/stream', { messages: [{ role: 'user', content: `${tokens}/${pace}` }] }),
  marker: '"type":"text-delta"',
  content: (text) => `"text":"${text}"`,
  end: '\n\n',
};

export const langgraph: Wire = {
  request: (tokens, pace) =>
    post('/runs/stream', {
      assistant_id: 'tokens',
      input: { asked: `${tokens}/${pace}` },
      stream_mode: ['custom'],
    }),
  marker: 'event: custom',
  content: (text) => `data: "${text}"`,
  end: '\n\n',
};
