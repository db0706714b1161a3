import type { Message } from '../schema/message.ts';

/** A tool that the client of a run offers to run itself. An agent asks for it with `context.await(…, { tool })`. */
export interface ClientTool {
  readonly name: string;
  readonly description?: string;
  /** A JSON Schema of the tool's input. */
  readonly parameters?: Readonly<Record<string, unknown>>;
}

/** What the request of a run says beside its messages, in the words of its protocol. */
export interface AgentRequest {
  /** `acp` for runs that were made with this server's own API or in this process; otherwise as `ai-sdk`, `openai`. */
  readonly protocol: string;
  /** The client's own id of the conversation, where the session has another one. */
  readonly conversation?: string;
  /** What the system and developer messages say, in their order, with blank lines between them. */
  readonly instructions?: string;
  /** What else the client has chosen, such as `temperature`; the page of the protocol lists the fields. */
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly tools?: readonly ClientTool[];
  /** The state that the client holds. */
  readonly state?: unknown;
}

/** The request of a run whose protocol has nothing to say beside messages. */
const plainRequest: AgentRequest = Object.freeze({ protocol: 'acp' });

/** What a run was made with, as stores keep it: the messages alone, where its request says no more. */
export type RunInput = Message[] | { readonly messages: Message[]; readonly request: AgentRequest };

export const messagesOf = (input: RunInput): Message[] => ('request' in input ? input.messages : input);
/** A copy: a replay gets the request as the client sent it, whatever the agent did with its own. */
export const requestOf = (input: RunInput): AgentRequest =>
  'request' in input ? JSON.parse(JSON.stringify(input.request)) : plainRequest;
