import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { makeApiKey } from '../../../src/http/auth/api-key.ts';
import { recordOf } from '../../../src/http/auth/key-records.ts';
import { Proc } from '../../support/proc.ts';
import { makeProject, type Project } from '../../support/project.ts';

/** Principals that are not the attacker. Many, so that none of them reaches its own limits. */
const others = 80;

const source = `
import { createServer, defineAgent } from 'rivulet';
import { remoteAgent } from 'rivulet/remote';
const { auth, ...limits } = JSON.parse(process.env.OPTIONS);
const echo = defineAgent({ name: 'echo', description: 'Repeats its input.' }, (input) => input);
const far = defineAgent({ name: 'far', description: 'Calls the server that its input names.' }, (input, context) =>
  remoteAgent(input[0].parts[0].content, { protocol: 'a2a', allowNetworks: ['127.0.0.1'] }).then(({ run }) => run(input, context)));
const app = await createServer({ agents: [echo, far], docs: false, playground: false, auth, ...limits });
console.log(await app.listen({ host: '127.0.0.1', port: 0 }));
`;

/** A server in a process of its own, whose callers have API keys. Of the build. */
export class AttackedServer {
  readonly url: string;
  readonly attacker: string;
  readonly others: readonly string[];
  readonly proc: Proc;
  readonly #child: ChildProcess;
  readonly #project: Project;

  private constructor(url: string, keys: readonly string[], child: ChildProcess, project: Project) {
    const [attacker = '', ...rest] = keys;
    this.url = url;
    this.attacker = attacker;
    this.others = rest;
    this.#child = child;
    this.#project = project;
    this.proc = new Proc(child.pid);
  }

  /** `command` stands in front of the one that starts the server. */
  static async start(limits: object, command: readonly string[] = []): Promise<AttackedServer> {
    const keys = Array.from({ length: others + 1 }, () => makeApiKey().key);
    const records = keys.map((key, index) => recordOf(key, { principal: `principal ${index}` }));
    const project = makeProject({ 'server.js': source });
    const [program = '', ...args] = [...command, process.execPath, 'server.js'];
    const env = { PATH: process.env.PATH ?? '', OPTIONS: JSON.stringify({ ...limits, auth: { keys: records } }) };
    const child = spawn(program, args, { cwd: project.folder, env, stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = await once(child.stdout, 'data');
    return new AttackedServer(String(line).trim(), keys, child, project);
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGKILL');
    if (this.#child.exitCode === null && this.#child.signalCode === null) await once(this.#child, 'close');
    this.#project.remove();
  }
}
