import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { Dice } from '../../support/dice.ts';

/** Milliseconds between two looks at a node, and those that it may take to answer. */
const pollInterval = 250;
const lookTime = 1_000;
/** Bytes of a body that are kept to be sent again; far more than any request here has. */
const mostBody = 1024 * 1024;
/** Whoever gets this knows that it is no node's. */
export const byBalancer = 'x-balancer';
/** The node that an answer is from. */
export const byNode = 'x-node';

/** One of the nodes, as the balancer sees it. */
interface Backend {
  readonly name: string;
  readonly port: number;
  healthy: boolean;
  looking: boolean;
  readonly open: Set<ServerResponse>;
}

/**
 * A load balancer without sticky sessions: each request goes to the next node that is well. A node that refuses is
 * passed over; one that does not answer a `GET /ping` in a second gets no more requests until it does, and half of
 * what it has under way is cut, half left to it, as balancers do the one or the other. What was sent is never sent
 * again by itself: whether a node did it before it died is for the client to find out.
 */
export class Balancer {
  readonly #server: Server = createServer((incoming, response) => void this.#serve(incoming, response));
  readonly #backends: Backend[];
  readonly #dice: Dice;
  readonly #timer: NodeJS.Timeout;
  #turn = 0;
  requests = 0;
  cuts = 0;

  private constructor(nodes: readonly { readonly name: string; readonly port: number }[], dice: Dice) {
    this.#backends = nodes.map(({ name, port }) => ({ name, port, healthy: true, looking: false, open: new Set() }));
    this.#dice = dice;
    this.#timer = setInterval(() => {
      for (const backend of this.#backends) this.#look(backend);
    }, pollInterval);
  }

  static async open(nodes: readonly { readonly name: string; readonly port: number }[], dice: Dice): Promise<Balancer> {
    const balancer = new Balancer(nodes, dice);
    await new Promise<void>((resolve) => balancer.#server.listen(0, '127.0.0.1', resolve));
    return balancer;
  }

  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the balancer does not listen');
    return `http://127.0.0.1:${address.port}`;
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    this.requests += 1;
    const body = await bodyOf(incoming);
    if (body === undefined) return void response.destroy();
    for (const backend of this.#inTurn()) {
      if (await this.#pass(backend, incoming, body, response)) return;
    }
    own(response, 503, 'no node is there');
  }

  /** Those that are well, the next one first; where none is, all of them. */
  #inTurn(): Backend[] {
    this.#turn += 1;
    const from = this.#turn % this.#backends.length;
    const all = [...this.#backends.slice(from), ...this.#backends.slice(0, from)];
    const healthy = all.filter((backend) => backend.healthy);
    return healthy.length > 0 ? healthy : all;
  }

  /** Sends a request on, and its answer back; false where the node refuses the connection. */
  #pass(backend: Backend, { method, url, headers }: IncomingMessage, body: Buffer, response: ServerResponse) {
    const { connection: _, ...rest } = headers;
    return new Promise<boolean>((resolve) => {
      const options = { host: '127.0.0.1', port: backend.port, method, path: url, headers: rest, agent: false };
      const outgoing = request(options, (answer) => {
        const { connection: _, 'keep-alive': __, 'transfer-encoding': ___, ...more } = answer.headers;
        response.writeHead(answer.statusCode ?? 502, { ...more, [byNode]: backend.name });
        response.flushHeaders();
        answer.on('error', () => response.destroy());
        answer.pipe(response);
      });
      backend.open.add(response);
      response.once('close', () => {
        backend.open.delete(response);
        outgoing.destroy();
        resolve(true);
      });
      outgoing.on('error', (error: NodeJS.ErrnoException) => {
        if (error.code === 'ECONNREFUSED') {
          backend.healthy = false;
          backend.open.delete(response);
          return resolve(false);
        }
        if (response.headersSent) response.destroy();
        else own(response, 502, `${backend.name}: ${error.message}`);
      });
      outgoing.end(body);
    });
  }

  #look(backend: Backend): void {
    if (backend.looking) return;
    backend.looking = true;
    const options = { host: '127.0.0.1', port: backend.port, path: '/ping', agent: false, timeout: lookTime };
    const looked = request(options, (answer) => {
      answer.resume();
      this.#found(backend, answer.statusCode === 200);
    });
    looked.on('timeout', () => looked.destroy());
    looked.on('error', () => this.#found(backend, false));
    looked.on('close', () => {
      backend.looking = false;
    });
    looked.end();
  }

  #found(backend: Backend, healthy: boolean): void {
    const fell = backend.healthy && !healthy;
    backend.healthy = healthy;
    if (!fell) return;
    for (const response of backend.open) {
      if (this.#dice.next() < 0.5) continue;
      this.cuts += 1;
      response.destroy();
    }
  }
}

function own(response: ServerResponse, status: number, why: string): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, { 'content-type': 'text/plain', 'retry-after': '1', [byBalancer]: 'yes' });
  response.end(why);
}

/** The whole body; undefined where the client went away, or sent more than is kept. */
async function bodyOf(incoming: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of incoming) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > mostBody) return undefined;
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks);
}
