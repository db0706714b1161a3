import type { AgentManifest } from '../../schema/agent.ts';
import type { RunAgainRequest, RunCreateRequest, RunResumeRequest } from '../../schema/api.ts';
import type { ModelCall } from '../../schema/diagnostic.ts';
import type { ErrorBody } from '../../schema/error.ts';
import type { Event } from '../../schema/event.ts';
import type { Message, MessageInput } from '../../schema/message.ts';
import type { Run, RunDetails, RunSummary } from '../../schema/run.ts';
import type { Session } from '../../schema/session.ts';

interface Example<T> {
  readonly summary: string;
  readonly value: T;
}

type Examples<T> = Readonly<Record<string, Example<T>>>;

const say = (content: string): MessageInput[] => [{ parts: [{ content }] }];

/** Bodies that work on a server with these agents, by the `operationId` of the call. */
export function requestExamples(agents: readonly string[]): Readonly<Record<string, Examples<object>>> {
  const agent_name = ['echo', 'demo'].find((name) => agents.includes(name)) ?? agents[0] ?? 'echo';
  const createRun: Examples<RunCreateRequest> = {
    sync: { summary: 'Wait for the answer', value: { agent_name, input: say('Hello') } },
    stream: { summary: 'Stream the answer', value: { agent_name, input: say('Hello'), mode: 'stream' } },
    async: { summary: 'Begin the run, and read it later', value: { agent_name, input: say('Hello'), mode: 'async' } },
    ...(agents.includes('approve') && {
      question: {
        summary: 'Run an agent that asks before it acts',
        value: { agent_name: 'approve', input: say('paint the fence') },
      },
    }),
  };
  const [message = { parts: [] }] = say('yes');
  const resumeRun: Examples<RunResumeRequest> = {
    sync: { summary: 'Reply, and wait for the end of the run', value: { await_resume: { message } } },
    stream: { summary: 'Reply, and stream the rest of the run', value: { await_resume: { message }, mode: 'stream' } },
  };
  const runAgain: Examples<RunAgainRequest> = {
    beginning: { summary: 'Run the same input once more', value: {} },
  };
  return { createRun, resumeRun, runAgain };
}

const begun = '2026-01-31T12:00:00.000Z';
const ended = '2026-01-31T12:00:02.500Z';

const message: Message = {
  role: 'agent/echo',
  parts: [{ content_type: 'text/plain', content: 'Hello' }],
  created_at: begun,
  completed_at: ended,
};

const run: Run = {
  run_id: '01a201c2-4407-7001-80bc-e75f1d221442',
  agent_name: 'echo',
  session_id: '01a201c2-4407-7001-80bc-e75f1d221443',
  status: 'completed',
  output: [message],
  created_at: begun,
  finished_at: ended,
};

const summary: RunSummary = { ...run, output: [], title: 'Hello' };

const details: RunDetails = { ...run, input: [{ ...message, role: 'user' }] };

const events: Event[] = [
  { type: 'message.part', part: { content_type: 'text/plain', content: 'Hello' } },
  { type: 'run.completed', run },
];

const modelCall: ModelCall = {
  kind: 'model_call',
  at: 3,
  agent_name: 'chat',
  started_at: begun,
  ended_at: ended,
  request_model: 'llama3.2',
  usage_input_tokens: 12,
  usage_output_tokens: 3,
};

const manifest: AgentManifest = {
  name: 'echo',
  description: 'Returns each message it receives.',
  input_content_types: ['*/*'],
  output_content_types: ['*/*'],
};

const session: Session = {
  id: '01a201c2-4407-7001-80bc-e75f1d221443',
  history: ['http://127.0.0.1:8000/resources/01a201c2-4407-7001-80bc-e75f1d221444'],
};

const error: ErrorBody = { code: 'not_found', message: 'There is no agent ecko; GET /agents lists them.' };

/** A value of each schema that answers have, by the name of the schema. */
export const schemaExamples: Readonly<Record<string, unknown>> = {
  AgentManifest: manifest,
  AgentsResponse: { agents: [manifest] },
  Error: error,
  Message: message,
  MessagePart: message.parts[0],
  Run: run,
  RunDetails: details,
  RunSummary: summary,
  RunsResponse: { runs: [summary] },
  RunEventsResponse: { events },
  DiagnosticsResponse: { diagnostics: [modelCall] },
  Session: session,
};

/** The frames of the end of a stream. */
export const streamExample = events
  .map((event, index) => `data: ${JSON.stringify(event)}\nid: ${index + 4}\n\n`)
  .join('');

/** A frame of the feed of runs. */
export const feedExample = `event: run\ndata: ${JSON.stringify({ run: summary })}\nid: 1769860802500\n\n`;
