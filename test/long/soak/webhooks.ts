import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { createClient } from '../../../src/client/client.ts';
import { Dice } from '../../support/dice.ts';
import { steadyPort } from '../../support/ports.ts';
import { RivuletProcess } from '../../support/process.ts';
import { makeProject } from '../../support/project.ts';
import { Faults, sleep } from './measurements.ts';

export interface WebhookPlan {
  /** How often the server or the receiver is killed. */
  readonly kills: number;
  readonly seed: number;
  readonly report?: (line: string) => void;
}

export interface WebhookResult {
  readonly faults: Faults;
  /** Runs that the server has acknowledged, and the webhooks that arrived for them, with repeated ones. */
  readonly runs: number;
  readonly arrived: number;
  readonly repeated: number;
  /** Webhooks that were given up after ten attempts, and then replayed. */
  readonly replayed: number;
}

const order = ['run.created', 'run.in-progress', 'run.awaiting', 'run.completed'];
/** Milliseconds in which all webhooks have to arrive after the last kill. */
const maxWait = 120_000;
const source = `
import { defineAgent } from 'rivulet';
import { timer, map } from 'rxjs';
export default defineAgent({ name: 'slow', description: 'Takes a moment.' }, () => timer(20).pipe(map(() => 'done')), { durable: true });
`;

/** One server with an SQLite file, and a receiver. Either is killed at random moments while runs with webhooks are created. */
export async function soakWebhooks({ kills, seed, report = () => {} }: WebhookPlan): Promise<WebhookResult> {
  const dice = new Dice(seed);
  const { folder, remove } = makeProject({ 'agents/slow.ts': source });
  const sides = new Sides(folder, await steadyPort(), await steadyPort());
  const started: string[] = [];
  try {
    await Promise.all([sides.startServer(), sides.startReceiver()]);
    const secret = await sides.secret();
    for (let kill = 1; kill <= kills; kill += 1) {
      const until = Date.now() + 50 + dice.below(400);
      while (Date.now() < until) {
        const run_id = await sides.begin();
        if (run_id !== undefined) started.push(run_id);
      }
      await (dice.next() < 0.5 ? sides.restartServer() : sides.restartReceiver(dice.below(300)));
      if (kill % 10 === 0) report(`${kill} kills, ${started.length} runs`);
    }
    return await verify(started, secret, sides);
  } finally {
    await sides.stop();
    remove();
  }
}

/** The two processes. */
class Sides {
  readonly #folder: string;
  readonly #file: string;
  readonly #ports: { readonly server: number; readonly receiver: number };
  #server: RivuletProcess | undefined;
  #receiver: ChildProcess | undefined;

  constructor(folder: string, server: number, receiver: number) {
    this.#folder = folder;
    this.#file = join(folder, 'received.jsonl');
    this.#ports = { server, receiver };
    writeFileSync(this.#file, '');
  }

  get url(): string {
    return `http://127.0.0.1:${this.#ports.server}`;
  }

  get #hook(): string {
    return `http://127.0.0.1:${this.#ports.receiver}/hook`;
  }

  async startServer(): Promise<void> {
    const store = `sqlite:${join(this.#folder, 'runs.db')}`;
    // Ten attempts within some 75 s.
    const limits = 'webhookRetry=2';
    this.#server = new RivuletProcess(
      ['serve', '--port', String(this.#ports.server), '--store', store, '--limit', limits],
      { RIVULET_WEBHOOK_SECRET: 'the master secret of the test of webhooks', RIVULET_ALLOW_NETWORK: '127.0.0.1' },
      this.#folder,
    );
    await this.#server.url();
  }

  async startReceiver(): Promise<void> {
    const script = resolve(import.meta.dirname, 'receiver-process.ts');
    const args = ['--import', 'tsx', script, this.#file, String(this.#ports.receiver)];
    this.#receiver = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    if (this.#receiver.stdout !== null) await once(this.#receiver.stdout, 'data');
  }

  async restartServer(): Promise<void> {
    await this.#server?.stop('SIGKILL');
    await this.startServer();
  }

  async restartReceiver(pause: number): Promise<void> {
    const gone = this.#receiver && once(this.#receiver, 'exit');
    this.#receiver?.kill('SIGKILL');
    await gone;
    await sleep(pause);
    await this.startReceiver();
  }

  async secret(): Promise<string> {
    const response = await fetch(`${this.url}/webhooks/secret?url=${encodeURIComponent(this.#hook)}`);
    return (await response.json()).secret;
  }

  /** The id of a new run; undefined where the server did not acknowledge it. */
  async begin(): Promise<string | undefined> {
    const webhook = { url: this.#hook, events: order };
    const body = { agent_name: 'slow', mode: 'async', input: [{ parts: [{ content: 'x' }] }], webhook };
    try {
      const response = await fetch(`${this.url}/runs`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      return response.status === 202 ? (await response.json()).run_id : undefined;
    } catch {
      await sleep(20);
      return undefined;
    }
  }

  /** Whether every webhook was delivered. */
  async isDone(): Promise<boolean> {
    const { runs } = await createClient({ url: this.url }).runs({ limit: 100 });
    if (runs.some(({ status }) => status !== 'completed')) return false;
    const response = await fetch(`${this.url}/deliveries?state=pending`);
    return (await response.json()).deliveries.length === 0;
  }

  /** Sends again what was given up; returns the runs. */
  async replayFailed(): Promise<string[]> {
    const response = await fetch(`${this.url}/deliveries?state=failed&limit=100`);
    const { deliveries }: { deliveries: { delivery_id: string; run_id: string }[] } = await response.json();
    for (const { delivery_id } of deliveries) {
      await fetch(`${this.url}/deliveries/${delivery_id}/replay`, { method: 'POST' });
    }
    return deliveries.map(({ run_id }) => run_id);
  }

  received(): { headers: Record<string, string>; body: string }[] {
    // A kill may have cut the last line of a life, to which the server got no answer.
    return readFileSync(this.#file, 'utf8')
      .split('\n')
      .flatMap((line) => {
        try {
          return [JSON.parse(line.slice(line.lastIndexOf('{"headers"')))];
        } catch {
          return [];
        }
      });
  }

  async stop(): Promise<void> {
    await this.#server?.stop('SIGTERM');
    this.#receiver?.kill('SIGKILL');
  }
}

async function verify(started: readonly string[], secret: string, sides: Sides): Promise<WebhookResult> {
  const faults = new Faults();
  const until = Date.now() + maxWait;
  const replayed: string[] = [];
  for (;;) {
    const again = await sides.replayFailed();
    replayed.push(...again);
    if (again.length === 0 && (await sides.isDone())) break;
    if (Date.now() > until) {
      faults.add('not all webhooks were delivered', `within ${maxWait / 1_000} s`);
      break;
    }
    await sleep(200);
  }
  const signature = new Webhook(secret);
  const byRun = new Map<string, { id: string; type: string }[]>();
  const received = sides.received();
  for (const { headers, body } of received) {
    // Not `verify`: it refuses what arrived more than five minutes ago.
    const [id = '', timestamp = ''] = [headers['webhook-id'], headers['webhook-timestamp']];
    if (signature.sign(id, new Date(Number(timestamp) * 1_000), body) !== headers['webhook-signature']) {
      faults.add('a signature is wrong', `${id}: ${headers['webhook-signature']}`);
    }
    const { type, data } = JSON.parse(body);
    const of = byRun.get(data.run_id) ?? [];
    of.push({ id: headers['webhook-id'] ?? '', type });
    byRun.set(data.run_id, of);
  }
  // A replayed webhook arrives after the later ones of its run.
  for (const run_id of started) checkRun(run_id, byRun.get(run_id) ?? [], faults, !replayed.includes(run_id));
  const ids = new Set(received.map(({ headers }) => headers['webhook-id']));
  return {
    faults,
    runs: started.length,
    arrived: received.length,
    repeated: received.length - ids.size,
    replayed: replayed.length,
  };
}

/** Each change of status arrives at least once, with one id, and in order: never after a later one. */
function checkRun(run_id: string, of: readonly { id: string; type: string }[], faults: Faults, inOrder: boolean): void {
  const types = of.map(({ type }) => type);
  for (const type of ['run.created', 'run.in-progress', 'run.completed']) {
    if (!types.includes(type)) faults.add('a webhook is missing', `${type} of run ${run_id}: ${types}`);
    const ids = new Set(of.filter((one) => one.type === type).map(({ id }) => id));
    if (ids.size > 1) faults.add('a webhook has two ids', `${type} of run ${run_id}`);
  }
  const places = types.map((type) => order.indexOf(type));
  if (inOrder && places.some((place, index) => place < (places[index - 1] ?? 0))) {
    faults.add('webhooks are out of order', `run ${run_id}: ${types}`);
  }
}
