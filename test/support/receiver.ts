import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { onTestFinished } from 'vitest';

/** A webhook as it arrived. */
export interface Received {
  readonly id: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: { readonly type: string; readonly timestamp: string; readonly data: Record<string, unknown> };
}

interface ReceiverAnswer {
  readonly status: number;
  readonly headers?: Record<string, string>;
}

/** A server that receives webhooks. It answers 204 unless a test gives it other answers. */
export class Receiver {
  readonly received: Received[] = [];
  /** The status of an answer, with its headers; `undefined` never answers. */
  answer: (received: Received) => ReceiverAnswer | undefined | Promise<ReceiverAnswer> = () => ({ status: 204 });
  readonly #server: Server;
  #arrived: () => void = () => {};

  private constructor() {
    this.#server = createServer(async (request, response) => {
      let text = '';
      for await (const chunk of request) text += chunk;
      const id = String(request.headers['webhook-id']);
      const received = { id, headers: request.headers, text, body: JSON.parse(text) };
      this.received.push(received);
      const answering = this.answer(received);
      this.#arrived();
      const answer = await answering;
      if (answer !== undefined) response.writeHead(answer.status, answer.headers).end();
    });
  }

  static async open(port = 0): Promise<Receiver> {
    const receiver = new Receiver();
    receiver.#server.listen(port, '127.0.0.1');
    await once(receiver.#server, 'listening');
    return receiver;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}/hooks`;
  }

  /** Resolves when so many webhooks have arrived. */
  async has(count: number): Promise<Received[]> {
    while (this.received.length < count) await new Promise<void>((resolve) => (this.#arrived = resolve));
    return this.received;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    if (!this.#server.listening) return;
    this.#server.close();
    await once(this.#server, 'close');
  }
}

/** The body, as the library of Standard Webhooks verifies it. @throws Error where the signature is wrong */
export function verified(secret: string, { text, headers }: Received): unknown {
  const own = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
  return new Webhook(secret).verify(text, own);
}

/** A receiver, closed when the test is over. */
export async function receiver(): Promise<Receiver> {
  const found = await Receiver.open();
  onTestFinished(() => found.close());
  return found;
}
