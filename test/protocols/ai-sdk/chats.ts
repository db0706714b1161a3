import * as six from 'ai';
import * as five from 'ai5';
import * as strict from 'ai50';

/**
 * The versions of the AI SDK, by their names in package.json. The oldest one refuses any property of a chunk that it does
 * not know.
 */
const versions = { ai: six, ai5: five, ai50: strict } as const;
export type Version = keyof typeof versions;
export const versionNames: readonly Version[] = ['ai', 'ai5', 'ai50'];

/** A message as every version has it. */
export interface ChatMessage {
  readonly id: string;
  readonly role: 'system' | 'user' | 'assistant';
  readonly parts: readonly ChatPart[];
  readonly metadata?: unknown;
}

export interface ChatPart {
  readonly type: string;
  readonly text?: string;
  readonly state?: string;
  readonly toolName?: string;
  readonly toolCallId?: string;
  readonly input?: unknown;
  readonly output?: unknown;
  readonly errorText?: string;
  readonly approval?: unknown;
  readonly [property: string]: unknown;
}

/** What tests use of a chat. */
export interface Chat {
  readonly id: string;
  readonly status: 'submitted' | 'streaming' | 'ready' | 'error';
  readonly error: Error | undefined;
  messages: ChatMessage[];
  readonly lastMessage: ChatMessage | undefined;
  sendMessage(message: object, options?: object): Promise<void>;
  regenerate(options?: object): Promise<void>;
  resumeStream(options?: object): Promise<void>;
  addToolResult(result: object): Promise<void>;
  addToolApprovalResponse?(response: object): Promise<void>;
  stop(): Promise<void>;
}

export interface ChatOptions {
  readonly api: string;
  readonly id?: string;
  readonly fetch?: typeof globalThis.fetch;
  readonly headers?: Record<string, string>;
  readonly body?: object;
  readonly messages?: readonly ChatMessage[];
  /** Answers are sent as soon as the last question has one. */
  readonly sends?: boolean;
  /** Default: the SDK's, for `api`. */
  readonly transport?: object;
  readonly onToolCall?: (call: { toolCall: { toolCallId: string; toolName: string; input: unknown } }) => void;
}

/** What `useChat` does for React, without React. */
class State {
  status = 'ready';
  error: Error | undefined;
  messages: unknown[];

  constructor(messages: readonly unknown[]) {
    this.messages = [...messages];
  }

  pushMessage = (message: unknown): void => {
    this.messages = [...this.messages, structuredClone(message)];
  };

  popMessage = (): void => {
    this.messages = this.messages.slice(0, -1);
  };

  replaceMessage = (index: number, message: unknown): void => {
    this.messages = this.messages.with(index, structuredClone(message));
  };

  snapshot = <T>(value: T): T => structuredClone(value);
}

/** What tests use of the package `ai`. */
interface Sdk {
  readonly AbstractChat: new (options: object) => Chat;
  readonly DefaultChatTransport: new (options: object) => object;
  readonly lastAssistantMessageIsCompleteWithToolCalls: Complete;
  /** From version 6 on. */
  readonly lastAssistantMessageIsCompleteWithApprovalResponses?: Complete;
}
type Complete = (chat: object) => boolean;

/** The official chat of a version, over its `DefaultChatTransport`. */
export function openChat(
  version: Version,
  { api, messages = [], sends = true, onToolCall, transport, id, ...options }: ChatOptions,
): Chat {
  // One cast: each version has types of its own for the same things.
  const sdk = versions[version] as unknown as Sdk;
  class TestChat extends sdk.AbstractChat {}
  return new TestChat({
    ...(id !== undefined && { id }),
    state: new State(messages),
    transport: transport ?? new sdk.DefaultChatTransport({ api, ...options }),
    onToolCall,
    onError: () => {},
    ...(sends && {
      sendAutomaticallyWhen: (chat: object) =>
        sdk.lastAssistantMessageIsCompleteWithToolCalls(chat) ||
        sdk.lastAssistantMessageIsCompleteWithApprovalResponses?.(chat) === true,
    }),
  });
}
