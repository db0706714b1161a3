import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import type { Dice } from '../../support/dice.ts';
import { listenOn } from '../../support/ports.ts';

/** Milliseconds between two health checks of a node, and until one fails. */
const pollInterval = 250;
const checkTimeout = 1_000;
/** Bytes of a request's body, which is buffered so that it can be sent to another node. */
const maxBody = 1024 * 1024;
/** Header of responses that come from the balancer itself. */
export const balancerHeader = 'x-balancer';
/** Header with the node of a response. */
export const nodeHeader = 'x-node';

/** The balancer's state of a node. */
interface Backend {
  readonly name: string;
  readonly port: number;
  healthy: boolean;
  checking: boolean;
  readonly open: Set<ServerResponse>;
}

/**
 * A load balancer without sticky sessions: each request goes to the next healthy node. A node that refuses connections is
 * skipped. A node that does not respond to `GET /ping` within a second gets no requests until it does; half of its open
 * connections are cut and half stay, because balancers do either. A request that was sent is never repeated: the client
 * has to find out whether the node has processed it.
 */
export class Balancer {
  readonly #server: Server = createServer((incoming, response) => void this.#serve(incoming, response));
  readonly #backends: Backend[];
  readonly #dice: Dice;
  readonly #timer: NodeJS.Timeout;
  #turn = 0;
  url = '';
  requests = 0;
  cuts = 0;

  private constructor(nodes: readonly { readonly name: string; readonly port: number }[], dice: Dice) {
    this.#backends = nodes.map(({ name, port }) => ({ name, port, healthy: true, checking: false, open: new Set() }));
    this.#dice = dice;
    this.#timer = setInterval(() => {
      for (const backend of this.#backends) this.#check(backend);
    }, pollInterval);
  }

  static async open(nodes: readonly { readonly name: string; readonly port: number }[], dice: Dice): Promise<Balancer> {
    const balancer = new Balancer(nodes, dice);
    balancer.url = await listenOn(balancer.#server);
    return balancer;
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
    for (const backend of this.#candidates()) {
      if (await this.#forward(backend, incoming, body, response)) return;
    }
    respond(response, 503, 'no node is available');
  }

  /** The healthy nodes, the next one first; all nodes if none is healthy. */
  #candidates(): Backend[] {
    this.#turn += 1;
    const from = this.#turn % this.#backends.length;
    const all = [...this.#backends.slice(from), ...this.#backends.slice(0, from)];
    const healthy = all.filter((backend) => backend.healthy);
    return healthy.length > 0 ? healthy : all;
  }

  /** Forwards a request and its response; false if the node refuses the connection. */
  #forward(backend: Backend, { method, url, headers }: IncomingMessage, body: Buffer, response: ServerResponse) {
    const { connection: _, ...rest } = headers;
    return new Promise<boolean>((resolve) => {
      const options = { host: '127.0.0.1', port: backend.port, method, path: url, headers: rest, agent: false };
      const outgoing = request(options, (answer) => {
        const { connection: _, 'keep-alive': __, 'transfer-encoding': ___, ...more } = answer.headers;
        response.writeHead(answer.statusCode ?? 502, { ...more, [nodeHeader]: backend.name });
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
        else respond(response, 502, `${backend.name}: ${error.message}`);
      });
      outgoing.end(body);
    });
  }

  #check(backend: Backend): void {
    if (backend.checking) return;
    backend.checking = true;
    const options = { host: '127.0.0.1', port: backend.port, path: '/ping', agent: false, timeout: checkTimeout };
    const check = request(options, (answer) => {
      answer.resume();
      this.#setHealth(backend, answer.statusCode === 200);
    });
    check.on('timeout', () => check.destroy());
    check.on('error', () => this.#setHealth(backend, false));
    check.on('close', () => {
      backend.checking = false;
    });
    check.end();
  }

  #setHealth(backend: Backend, healthy: boolean): void {
    const failed = backend.healthy && !healthy;
    backend.healthy = healthy;
    if (!failed) return;
    for (const response of backend.open) {
      if (this.#dice.next() < 0.5) continue;
      this.cuts += 1;
      response.destroy();
    }
  }
}

function respond(response: ServerResponse, status: number, reason: string): void {
  if (response.headersSent || response.destroyed) return;
  response.writeHead(status, { 'content-type': 'text/plain', 'retry-after': '1', [balancerHeader]: 'yes' });
  response.end(reason);
}

/** The whole body; undefined if the client disconnects or sends too much. */
async function bodyOf(incoming: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for await (const chunk of incoming) {
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > maxBody) return undefined;
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks);
}
