import { existsSync, statfsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { configDefaults, defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
import { newestClients } from './test/protocols/newest-clients/plugin.ts';

/**
 * The folder of temporary files: in memory where there is room, because the files of stores are written and synchronised
 * thousands of times. The tests of servers use the disk.
 */
const memoryFolder = '/dev/shm';
const hasRoom = existsSync(memoryFolder) && statfsSync(memoryFolder).bavail * statfsSync(memoryFolder).bsize > 2 ** 30;
const env = hasRoom ? { TMPDIR: memoryFolder } : {};

/** Begins with the files that have a process of their own. By default they come last, when the other processes are done. */
class IsolatedFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((a, b) => Number(b.project.config.isolate) - Number(a.project.config.isolate));
  }
}

/**
 * Code of a test runs a few times, and its objects live short: with V8's own settings a fifth of the CPU goes into
 * compiling what is not used again, or was discarded meanwhile, and a tenth into collections of 1 to 16 MB. Node 22 and
 * newer do not start with the first flag, which their V8 has no longer.
 */
const v8Flags = [
  ...(process.versions.node.startsWith('20.') ? ['--interrupt-budget=2000000'] : []),
  '--max-lazy',
  '--no-flush-bytecode',
  '--single-threaded-gc',
  '--min-semi-space-size=64',
  '--max-semi-space-size=64',
];

const isolated = [
  'test/simulate/*.test.ts',
  'test/core/collections.test.ts',
  'test/core/flat.test.ts',
  'test/engine/queued-heap.test.ts',
  'test/engine/timers.test.ts',
  'test/protocols/mcp/unchecked.test.ts',
];

/** Only for test/protocols/newest-clients/run.ts, which installs these clients and has a newer Node for them. */
const newestProject =
  process.env.NEWEST_CLIENTS === undefined
    ? []
    : [
        {
          extends: true as const,
          plugins: [newestClients()],
          test: {
            name: 'newest',
            include: [
              'test/**/*.newest.ts',
              'test/adapters/*.clients.ts',
              'test/protocols/{ai-sdk,openai,official}/*.clients.ts',
              'test/protocols/*.clients.ts',
            ],
            env,
          },
        },
      ];

const ownProcess = ['test/docs/code.clients.ts'];

export default defineConfig({
  resolve: {
    // Tests, agents and examples say `rivulet`, as users do, and get the sources.
    alias: [
      { find: /^rivulet$/, replacement: fileURLToPath(new URL('./src/index.ts', import.meta.url)) },
      {
        find: /^rivulet\/adapters\/(.+)$/,
        replacement: fileURLToPath(new URL('./src/adapters/$1.ts', import.meta.url)),
      },
      { find: /^rivulet\/llm$/, replacement: fileURLToPath(new URL('./src/llm/tool-loop.ts', import.meta.url)) },
      { find: /^rivulet\/react$/, replacement: fileURLToPath(new URL('./src/react/use-run.ts', import.meta.url)) },
      { find: /^rivulet\/client$/, replacement: fileURLToPath(new URL('./src/client/client.ts', import.meta.url)) },
      {
        find: /^rivulet\/client\/ai-sdk$/,
        replacement: fileURLToPath(new URL('./src/client/ai-sdk.ts', import.meta.url)),
      },
      {
        find: /^rivulet\/remote$/,
        replacement: fileURLToPath(new URL('./src/remote/remote-agent.ts', import.meta.url)),
      },
      { find: /^rivulet\/remote\/mcp$/, replacement: fileURLToPath(new URL('./src/remote/mcp.ts', import.meta.url)) },
      { find: /^rivulet\/testing$/, replacement: fileURLToPath(new URL('./src/testing/testing.ts', import.meta.url)) },
    ],
  },
  test: {
    // The default suite runs what needs one process, and little else. What needs more has a command of its own:
    // `test:clients` has the official clients and libraries, which take longer to load than most tests to run;
    // `test:servers` starts and kills processes and waits for leases and time-outs that are real; `test:browser` drives
    // a browser.
    projects: [
      // Ids never go back: a process that has simulated makes ids of 2030, and no later run of it expires. What measures
      // the heap collects its garbage again and again, which takes ten times as long in a process with other files; and what
      // counts timers would count theirs.
      { extends: true, test: { name: 'default-isolated', include: isolated, isolate: true } },
      {
        extends: true,
        test: {
          name: 'default',
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...isolated],
          env,
          setupFiles: 'test/support/clock-of-ids.ts',
        },
      },
      // The provider of the AI SDK reads the address of its model once in a process, when it is first imported.
      { extends: true, test: { name: 'clients-isolated', include: ownProcess, env, isolate: true } },
      {
        extends: true,
        test: {
          name: 'clients',
          include: ['test/**/*.clients.ts'],
          exclude: [...configDefaults.exclude, ...ownProcess],
          env,
        },
      },
      { extends: true, test: { name: 'browser', include: ['test/**/*.browser.ts'] } },
      { extends: true, test: { name: 'servers', include: ['test/**/*.servers.ts'] } },
      ...newestProject,
    ],
    // What hangs, not what takes long: a machine may be ten times slower than another.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    // A poll waits for an event, whenever it comes.
    expect: { poll: { timeout: 120_000, interval: 20 } },
    // Most tests wait for sockets and processes more than they compute. Those of `npm test` wait less, and each worker loads
    // the sources once more: it has three, which saves 3 to 5 s on two cores.
    maxWorkers: 4,
    sequence: { sequencer: IsolatedFirst },
    // No test changes a module's state, so files may share what they import.
    isolate: false,
    execArgv: v8Flags,
    // acp-sdk's ESM entry does not load on Node; going through Vite, it does.
    server: { deps: { inline: ['acp-sdk'] } },
  },
});
