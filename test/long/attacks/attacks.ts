import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { listenOn } from '../../support/ports.ts';

export interface Target {
  readonly host: string;
  readonly port: number;
  readonly key: string;
  /** The newest of the large runs that the attacker has made before, and their session. */
  readonly run?: string;
  readonly session?: string;
  /** The URL of the attacker's own server, whose answers never end. */
  readonly hostile?: string;
}

/** What an attack has seen. */
export interface Tally {
  /** Connections that are open. */
  open: number;
  /** Connections that the server has closed. */
  closed: number;
  /** Answers, by their status. */
  readonly answers: Record<string, number>;
}

/** What one connection of an attack does, for as long as it is open. */
interface Attack {
  readonly connections: number;
  /** Runs of 9.9 MB that are made before. */
  readonly runs?: number;
  /** Whether it has a server of its own. */
  readonly hostile?: true;
  /** Whether it reads nothing of the answers. */
  readonly deaf?: true;
  /** Sent when the connection is open. */
  readonly begin: (target: Target) => string | Buffer;
  /** Sent each second. */
  readonly drip?: string;
  /** Sent after each answer. */
  readonly again?: (target: Target) => string;
}

const get = ({ host, key }: Target): string =>
  `GET /runs HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${key}\r\n`;
const read = ({ host, key }: Target, path: string): string =>
  `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${key}\r\n\r\n`;
const post = ({ host, key }: Target, length: number): string =>
  `POST /runs HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${key}\r\n` +
  `Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n`;
const run = JSON.stringify({ agent_name: 'echo', input: [{ parts: [{ content: 'hi' }] }] });
const create = (target: Target): string => post(target, run.length) + run;
/** A body that is refused while it is parsed, at an address that has many operations. */
const refused = ({ host, key }: Target): string =>
  `POST /mcp HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${key}\r\nAccept: application/json, text/event-stream\r\n` +
  'Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{"';
/** A run whose agent calls the attacker's own server. */
function askFar(target: Target): string {
  const body = JSON.stringify({ agent_name: 'far', input: [{ parts: [{ content: target.hostile }] }], mode: 'sync' });
  return post(target, body.length) + body;
}
const deep = Buffer.concat([
  Buffer.from('{"agent_name":"echo","input":[],"x":'),
  Buffer.alloc(5_000_000, '['),
  Buffer.alloc(5_000_000, ']'),
  Buffer.from('}'),
]);

/** Bytes. */
const piece = 64 * 1024;

export const attacks = {
  idle: { connections: 10_000, begin: () => '' },
  'slow headers': { connections: 1_000, begin: (target) => `${get(target)}X-Slow: `, drip: 'a' },
  'slow bodies': { connections: 500, begin: (target) => `${post(target, 100_000)}{`, drip: ' ' },
  'line feeds': { connections: 500, begin: (target) => `${get(target)}\r\n`, drip: '\r\n' },
  'large headers': { connections: 8, begin: (target) => `${get(target)}X-Large: ${'a'.repeat(1_000_000)}\r\n\r\n` },
  'deep bodies': { connections: 2, begin: (target) => Buffer.concat([Buffer.from(post(target, deep.length)), deep]) },
  'unread runs': { connections: 60, runs: 1, deaf: true, begin: (target) => read(target, `/runs/${target.run}`) },
  'large chats': {
    connections: 4,
    runs: 10,
    begin: (target) => read(target, `/ai/echo/${target.session}?limit=100`),
    again: (target) => read(target, `/ai/echo/${target.session}?limit=100`),
  },
  flood: { connections: 32, begin: create, again: create },
  'refused bodies': { connections: 8, begin: refused, again: refused },
  'endless cards': { connections: 4, hostile: true, begin: askFar, again: askFar },
} satisfies Record<string, Attack>;
export type AttackName = keyof typeof attacks;

/** Starts the server of an attack, and makes its large runs. */
export async function prepared(name: AttackName, target: Target): Promise<Target> {
  const { runs = 0, hostile }: Attack = attacks[name];
  if (hostile) return { ...target, hostile: await startHostile() };
  const session = crypto.randomUUID();
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${target.key}` };
  const input = [{ parts: [{ content: 'x'.repeat(9_900_000) }] }];
  const body = JSON.stringify({ agent_name: 'echo', input, session_id: session, mode: 'sync' });
  let run = '';
  for (let made = 0; made < runs; made += 1) {
    const answer = await fetch(`http://${target.host}:${target.port}/runs`, { method: 'POST', headers, body });
    await answer.text();
    run = answer.headers.get('run-id') ?? '';
  }
  return { ...target, run, session };
}

/** A server that answers each request with a stream of blank lines without an end. Returns its URL. */
function startHostile(): Promise<string> {
  const lines = Buffer.alloc(64 * 1024, '\n');
  const server = createServer((_, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const push = (): void => {
      while (!response.destroyed && response.write(lines));
    };
    response.on('drain', push);
    push();
  });
  return listenOn(server);
}

/** Keeps so many connections of an attack open; those that the server closes are opened again. */
export class Attacker {
  readonly tally: Tally = { open: 0, closed: 0, answers: {} };
  readonly #attack: Attack;
  readonly #target: Target;
  readonly #first: Buffer;
  readonly #sockets = new Set<Socket>();

  constructor(name: AttackName, target: Target) {
    this.#attack = attacks[name];
    this.#target = target;
    this.#first = Buffer.from(this.#attack.begin(target));
  }

  /** Resolves when all connections were opened. */
  async start(connections: number): Promise<void> {
    for (let begun = 0; begun < connections; begun += 10) {
      await Promise.all(Array.from({ length: Math.min(10, connections - begun) }, () => this.#open()));
    }
  }

  /** In pieces, as over a network: loopback would take all of it at once, in the time of any caller that has the core. */
  #send(socket: Socket, from: number): void {
    if (from >= this.#first.length || socket.destroyed) return;
    const end = from + piece;
    socket.write(this.#first.subarray(from, end), () => setImmediate(() => this.#send(socket, end)));
  }

  #open(): Promise<void> {
    const { host, port } = this.#target;
    const { again, drip, deaf } = this.#attack;
    return new Promise((resolve) => {
      const socket = connect(port, host, () => {
        this.tally.open += 1;
        this.#sockets.add(socket);
        this.#send(socket, 0);
        // Of each connection its own, so that they are spread over the second.
        const timer = setInterval(() => drip && socket.write(drip), 1_000);
        socket.on('close', () => clearInterval(timer));
        resolve();
      });
      if (deaf) socket.pause();
      else
        socket.on('data', (data) => {
          for (const [, status = ''] of data.toString('latin1').matchAll(/HTTP\/1\.1 (\d{3})/g)) {
            this.tally.answers[status] = (this.tally.answers[status] ?? 0) + 1;
            if (again !== undefined) socket.write(again(this.#target));
          }
        });
      // A reset closes the connection as well.
      socket.on('error', () => {});
      socket.on('close', () => {
        if (this.#sockets.delete(socket)) this.tally.open -= 1;
        this.tally.closed += 1;
        resolve();
        // Not at once, and not all together: this measures attacks, and not how fast connections are accepted.
        setTimeout(() => void this.#open(), Math.random() * 1_000);
      });
    });
  }
}
