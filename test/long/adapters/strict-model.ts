import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { listenOn } from '../../support/ports.ts';
import { type Told, textIn, violationIn } from './told.ts';

/** Where an answer is held: before its first byte, in the middle, or after its end. */
export type Point = 'request' | 'stream' | 'end';

/** An answer of the model in a turn: the one that calls the tool, or the one after its result. */
export type Kind = 'call' | 'answer';

/** What the server says of each request that it answers. */
export const tokensPerCall = 10;

interface Gate {
  readonly kind: Kind;
  readonly point: Point;
  readonly reached: (token: string) => void;
}

export interface StrictModelOptions {
  /** Milliseconds between tokens, so that processes die within an answer. Default 0. */
  readonly pace?: number;
}

/**
 * A server of a model that is as strict as OpenAI's: a call without its result, or a result without its call, is 400. Told
 * "Pay 10", the model calls the tool, and then tells its result. No two answers are the same.
 */
export class StrictModel {
  /** By the amount of the turn, why requests were refused. */
  readonly refused = new Map<number, string[]>();
  /** By the amount of the turn, what the model was told last. */
  readonly told = new Map<number, readonly Told[]>();
  url = '';
  readonly #gates = new Map<number, Gate>();
  readonly #pace: number;
  readonly #server = createServer((request, response) => {
    void json(request).then((body) => this.#answer(body as { messages: Told[] }, response));
  });
  #answers = 0;

  private constructor({ pace = 0 }: StrictModelOptions) {
    this.#pace = pace;
  }

  static async open(options: StrictModelOptions = {}): Promise<StrictModel> {
    const model = new StrictModel(options);
    model.url = `${await listenOn(model.#server)}/v1`;
    return model;
  }

  /** Holds the next such answer in the turn; resolves to its first token when it is there. A held answer has no end. */
  hold(amount: number, kind: Kind, point: Point): Promise<string> {
    return new Promise((reached) => this.#gates.set(amount, { kind, point, reached }));
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #answer({ messages }: { readonly messages: Told[] }, response: ServerResponse): Promise<void> {
    this.#answers += 1;
    const number = this.#answers;
    const asked = messages.findLastIndex((one) => one.role === 'user' && turnOf(one) !== undefined);
    const { verb, amount } = turnOf(messages[asked]) ?? { verb: 'Hello', amount: 0 };
    const violation = violationIn(messages);
    if (violation !== undefined) {
      const error = { message: violation, type: 'invalid_request_error' };
      this.refused.set(amount, [...(this.refused.get(amount) ?? []), violation]);
      response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ error }));
      return;
    }
    this.told.set(amount, messages);
    const results = messages.slice(asked).filter(({ role }) => role === 'tool');
    const calls = verb === 'Pay' && results.length === 0;
    const tokens = [`#${number} `, ...(calls ? ['I ', 'pay. '] : ['All ', 'is ', 'said.'])];
    const gate = this.#gateFor(amount, calls ? 'call' : 'answer');
    const holds = (point: Point): boolean => {
      if (gate?.point !== point) return false;
      gate.reached(tokens[0] ?? '');
      return point !== 'end';
    };
    if (holds('request')) return;
    const send = (delta: object, finish_reason: string | null = null): boolean => {
      const choices = [{ index: 0, delta, finish_reason }];
      const chunk = { id: `c-${number}`, object: 'chat.completion.chunk', created: 0, model: 'strict', choices };
      return response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    };
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    send({ role: 'assistant', content: '' });
    for (const [index, content] of tokens.entries()) {
      if (index === 2 && holds('stream')) return;
      send({ content });
      if (this.#pace > 0) await new Promise((resolve) => setTimeout(resolve, this.#pace));
      if (response.destroyed) return;
    }
    if (calls) {
      const call = { name: 'pay', arguments: JSON.stringify({ amount }) };
      send({ tool_calls: [{ index: 0, id: `call_${number}`, type: 'function', function: call }] });
    }
    send({}, calls ? 'tool_calls' : 'stop');
    const usage = { prompt_tokens: tokensPerCall, completion_tokens: 5, total_tokens: tokensPerCall + 5 };
    response.write(
      `data: ${JSON.stringify({ object: 'chat.completion.chunk', id: `c-${number}`, choices: [], usage })}\n\n`,
    );
    response.end('data: [DONE]\n\n', () => holds('end'));
  }

  /** Each gate holds one answer: the answer after the crash comes through. */
  #gateFor(amount: number, kind: Kind): Gate | undefined {
    const gate = this.#gates.get(amount);
    if (gate?.kind !== kind) return undefined;
    this.#gates.delete(amount);
    return gate;
  }
}

function turnOf(message: Told | undefined): { readonly verb: string; readonly amount: number } | undefined {
  const [, verb, amount] = /^(Pay|Hello) (\d+)$/.exec(textIn(message?.content)) ?? [];
  return verb === undefined ? undefined : { verb, amount: Number(amount) };
}
