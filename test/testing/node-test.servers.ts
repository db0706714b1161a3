import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { newFolder } from '../support/folder.ts';

const built = (path: string): string => pathToFileURL(join(import.meta.dirname, '../../dist', path)).href;

/** The report of `node --test`, which ends by itself, and its exit code. */
async function reportOf(body: string): Promise<{ code: number; report: string }> {
  const folder = newFolder(onTestFinished);
  const file = join(folder, 'agent.test.mjs');
  const head = `
    import assert from 'node:assert/strict';
    import { mock, test } from 'node:test';
    import { defineAgent } from '${built('index.js')}';
    import { cutEverywhere, runAgent } from '${built('testing/testing.js')}';
    const agent = (run, options) => defineAgent({ name: 'waits', description: 'Waits.' }, run, options);
    const never = () => new Promise(() => {});
  `;
  writeFileSync(file, head + body);
  // Node does not start tests within a process that runs tests of its own.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  return new Promise((resolve) => {
    execFile(process.execPath, ['--test', '--test-reporter=tap', file], { env, cwd: folder }, (error, report) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : error === null ? 0 : -1, report }),
    );
  });
}

it('waits under `node --test` for a run that nothing but a time-out ends, and then lets the process end', async () => {
  const { code, report } = await reportOf(`
    test('a run that emits nothing', async () => {
      const { run } = await runAgent(agent(never), 'go', { limits: { idleTimeout: 50, sweepInterval: 10 } });
      assert.equal(run.error.data.reason, 'idle_timeout');
    });
    test('a question that expires', async () => {
      const asks = agent((_, context) => context.await('?', { expiresIn: 50 }));
      const { run } = await runAgent(asks, 'go', { answers: () => undefined, limits: { sweepInterval: 10 } });
      assert.equal(run.error.data.reason, 'await_timeout');
    });
    test('a signal that fires later', async () => {
      const { run } = await runAgent(agent(never), 'go', { signal: AbortSignal.timeout(50) });
      assert.equal(run.status, 'cancelled');
    });
    test('a durable run that is cut off', async () => {
      const limits = { idleTimeout: 50, sweepInterval: 10 };
      await cutEverywhere(agent((_, { step }) => step('one', never), { durable: true }), 'go', { limits });
    });
  `);
  expect(report).toMatch(/^# pass 4$/m);
  expect(report).toMatch(/^# cancelled 0$/m);
  expect(code).toBe(0);
});

it('has the times of a clock that `node:test` fakes, also in `expires_at`', async () => {
  const { code, report } = await reportOf(`
    test('a question', async () => {
      mock.timers.enable({ apis: ['Date'], now: Date.UTC(2020, 0, 1) });
      const asks = agent(async (_, context) => \`\${(await context.await('?', { expiresIn: 60_000 })).message.role}\`);
      const { run, questions } = await runAgent(asks, 'go', { answers: ['yes'] });
      assert.equal(run.status, 'completed');
      assert.equal(run.created_at, '2020-01-01T00:00:00.000Z');
      assert.equal(questions[0].expires_at, '2020-01-01T00:01:00.000Z');
    });
  `);
  expect(report).toMatch(/^# pass 1$/m);
  expect(code).toBe(0);
});
