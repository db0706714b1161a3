import { HttpAgent } from '@ag-ui/client';
import { HttpAgent as HttpAgent0 } from 'ag-ui-client-0';

/** What tests use of the official client, in both of its generations. */
export interface TestClient {
  messages: { id: string; role: string; content?: unknown }[];
  state: unknown;
  threadId: string;
  pendingInterrupts: { id: string; reason: string; message?: string; responseSchema?: object }[];
  /** Runs with the verifier on. Resolves to the types of the events that the client has accepted. */
  go(parameters?: object, subscriber?: object): Promise<string[]>;
  addMessage(message: object): void;
}

interface Options {
  readonly url: string;
  readonly threadId?: string;
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
  readonly initialMessages?: object[];
  readonly initialState?: unknown;
}

type Events = { event: { type: string } };

/** The clients' own warnings of retired fields would hide those of tests. */
function recorded<Agent extends { runAgent: (...parameters: never[]) => Promise<unknown> }>(agent: Agent): Agent {
  return Object.assign(agent, {
    go: async (parameters = {}, subscriber = {}) => {
      const types: string[] = [];
      const run: unknown = Reflect.apply(agent.runAgent, agent, [
        parameters,
        { ...subscriber, onEvent: ({ event }: Events) => void types.push(event.type) },
      ]);
      await run;
      return types;
    },
  });
}

export const generations: [name: string, make: (options: Options) => TestClient, modern: boolean][] = [
  ['1.0.0', (options) => recorded(new HttpAgent(options as never)) as unknown as TestClient, true],
  ['0.0.59', (options) => recorded(new HttpAgent0(options as never)) as unknown as TestClient, false],
];
