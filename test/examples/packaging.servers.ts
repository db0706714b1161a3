import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { defaultLimits } from '../../src/engine/limits.ts';
import { rivulet } from '../support/command.ts';
import { serve } from '../support/serve.ts';

const folder = 'examples/deploy';
const read = (name: string): string => readFileSync(`${folder}/${name}`, 'utf8');
const has = (program: string): boolean => spawnSync('which', [program]).status === 0;

interface Container {
  readonly image: string;
  readonly securityContext: Record<string, unknown>;
  readonly volumeMounts: readonly { readonly name: string }[];
}
interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly containers: readonly Container[];
        readonly volumes: readonly { readonly name: string }[];
        readonly securityContext: unknown;
        readonly automountServiceAccountToken: boolean;
        readonly terminationGracePeriodSeconds: number;
      };
    };
  };
}
const manifests: Manifest[] = parseAllDocuments(read('kubernetes.yaml')).map((document) => document.toJS());
const deployments = manifests.filter(({ kind }) => kind === 'Deployment');

/** The least time that a process gets to stop: the runs' grace, and eight seconds for streams and the store. */
const leastStopTime = defaultLimits.shutdownGrace / 1_000 + 8;

describe('the image', () => {
  const image = read('Dockerfile');

  it('runs as a user with a number that is not root, and without a shell', () => {
    expect(image).toMatch(/^USER [1-9]\d*:[1-9]\d*$/m);
    expect(image).toMatch(/^ENTRYPOINT \["node",/m);
  });

  it('has a health check that passes for a server, and fails without one', async () => {
    const [, text = '[]'] = /^HEALTHCHECK .*\\\n +CMD (.*)$/m.exec(image) ?? [];
    const command: string[] = JSON.parse(text);
    const { url } = await serve([]);
    const check = async (PORT: string): Promise<unknown> => {
      const [code] = await once(spawn(process.execPath, command.slice(1), { env: { PORT } }), 'exit');
      return code;
    };
    expect(await check(new URL(url).port)).toBe(0);
    expect(await check('1')).toBe(1);
  });

  it('keeps the development dependencies that the agents import', () => {
    const { devDependencies } = JSON.parse(readFileSync('package.json', 'utf8'));
    const imported = readdirSync('agents')
      .filter((file) => file.endsWith('.ts'))
      .flatMap((file) => [...readFileSync(`agents/${file}`, 'utf8').matchAll(/(?:from|import\() ?'([^']+)'/g)])
      .map(([, name = '']) => (name.startsWith('@') ? name.split('/', 2).join('/') : name.split('/', 1).join('')))
      .filter((name) => name in devDependencies);
    const kept = /for name in ([^;]+);/.exec(image)?.[1]?.split(' ') ?? [];
    // What the chat imports loads them: `rivulet/llm` for a model, `rivulet/remote/mcp` where MCP_SERVERS names servers.
    const loaded = ['openai', '@modelcontextprotocol/client'];
    expect(kept.toSorted()).toEqual([...new Set([...imported, ...loaded])].toSorted());
  });

  it('has a valid configuration', async () => {
    const [environment = ''] = /^ENV .*$/m.exec(image) ?? [];
    const variables = [...environment.matchAll(/([A-Z_]+)=(\S+)/g)].map(([, name = '', value = '']) => [name, value]);
    const [, args = '[]'] = /^CMD (.*)$/m.exec(image) ?? [];
    const [, ...folders]: string[] = JSON.parse(args);
    const { code, out } = await rivulet(['config', ...folders], { env: Object.fromEntries(variables) });
    expect([code, out]).toEqual([0, expect.stringContaining('Data: /data/rivulet.db')]);
  });
});

describe('the manifests of Kubernetes', () => {
  it.each(deployments.map((one) => [one.metadata.name, one] as const))('%s has the least rights', (_, { spec }) => {
    const pod = spec.template.spec;
    expect(pod.automountServiceAccountToken).toBe(false);
    expect(pod.securityContext).toEqual({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(leastStopTime);
    for (const { securityContext, volumeMounts } of pod.containers) {
      expect(securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      expect(pod.volumes.map(({ name }) => name)).toEqual(expect.arrayContaining(volumeMounts.map(({ name }) => name)));
    }
  });

  it('are the resources of the kustomization, which names their image', () => {
    const { resources, images } = parse(read('kustomization.yaml'));
    expect(resources).toEqual(['kubernetes.yaml']);
    const used = deployments.flatMap(({ spec }) => spec.template.spec.containers.map(({ image }) => image));
    for (const image of used) expect(images.map(({ name }: { name: string }) => name)).toContain(image.split(':')[0]);
  });

  it.skipIf(!has('kubectl'))('are built by kustomize', () => {
    const { status, stdout, stderr } = spawnSync('kubectl', ['kustomize', folder], { encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toContain('image: registry.example.com/rivulet:0.1.0');
    expect(stdout.split('\n---\n')).toHaveLength(manifests.length);
  });
});

describe('the units of systemd', () => {
  const unit = read('rivulet.service');
  const setting = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(unit)?.[1] ?? '';

  it('leave the server its time to stop', () => {
    expect(Number(setting('TimeoutStopSec'))).toBeGreaterThan(leastStopTime);
    expect(setting('KillMode')).toBe('mixed');
  });

  it('keep data in the state folder, under a user without rights', async () => {
    expect([setting('DynamicUser'), setting('NoNewPrivileges'), setting('CapabilityBoundingSet')]).toEqual([
      'yes',
      'yes',
      '',
    ]);
    expect(unit).toContain(`Environment=RIVULET_STORE=sqlite:/var/lib/${setting('StateDirectory')}/`);
    // V8 writes the code that it executes.
    expect(unit).not.toMatch(/^MemoryDenyWriteExecute/m);
  });

  it('listen at the address that the server expects', () => {
    const [, host, port] = /^ListenStream=(.*):(\d+)$/m.exec(read('rivulet.socket')) ?? [];
    expect([host, port]).toEqual(['127.0.0.1', '8000']);
  });

  it.skipIf(!has('systemd-analyze'))('are valid', () => {
    const files = ['rivulet.service', 'rivulet.socket'].map((name) => `${folder}/${name}`);
    // `man` looks for manuals, and the program is not where the unit expects it on every machine.
    const { stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', ...files], { encoding: 'utf8' });
    const problems = stderr.split('\n').filter((line) => line.includes('rivulet.') && !line.includes('not executable'));
    expect(problems).toEqual([]);
  });
});

describe('compose.yaml', () => {
  it('gives the nodes no rights and a root that is read-only', () => {
    const { services }: { services: Record<string, Record<string, unknown>> } = parse(read('compose.yaml'), {
      merge: true,
    });
    for (const one of Object.values(services).filter(({ image }) => image === 'rivulet')) {
      expect(one).toMatchObject({ read_only: true, init: true, cap_drop: ['ALL'], tmpfs: ['/tmp'] });
    }
  });
});
