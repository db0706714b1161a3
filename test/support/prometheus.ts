import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { steadyPort } from './ports.ts';

/** Whether there is a Prometheus. With `CI=true`, a missing one is an error. */
export function prometheusThere(): boolean {
  if (['prometheus', 'promtool'].every((name) => spawnSync(name, ['--version']).status === 0)) return true;
  if (process.env.CI === 'true') throw new Error('there is no prometheus with its promtool; install it');
  console.warn('\nSKIPPED: tests of what Prometheus reads, because there is none\n');
  return false;
}

/** The output of a check of promtool. @throws Error with its message, where the check fails */
export const promtool = (what: string, ...args: string[]): string =>
  execFileSync('promtool', ['check', what, ...args], { encoding: 'utf8' });

/** A sample of a query. */
export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: number;
}

/** An alert as Prometheus has evaluated it. */
export interface EvaluatedRule {
  readonly name: string;
  /** `unknown` before the first evaluation. */
  readonly health: 'ok' | 'err' | 'unknown';
  readonly lastError?: string;
  readonly state: 'inactive' | 'pending' | 'firing';
}

/** A Prometheus process of a test. */
export class Prometheus {
  readonly #url: string;
  readonly #stop: () => Promise<void>;

  private constructor(url: string, stop: () => Promise<void>) {
    this.#url = url;
    this.#stop = stop;
  }

  /** Starts one with a configuration, which promtool checks first. @throws Error with the message of either */
  static async start(configuration: object): Promise<Prometheus> {
    const folder = mkdtempSync(join(tmpdir(), 'rivulet-prometheus-'));
    const file = join(folder, 'prometheus.yml');
    writeFileSync(file, stringify(configuration));
    promtool('config', file);
    const address = `127.0.0.1:${await steadyPort()}`;
    const args = [`--config.file=${file}`, `--storage.tsdb.path=${join(folder, 'data')}`];
    const child = spawn('prometheus', [...args, `--web.listen-address=${address}`], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    const up = new Promise<boolean>((resolve) => {
      child.stderr.setEncoding('utf8').on('data', (text: string) => {
        said = (said + text).slice(-20_000);
        if (said.includes('Server is ready to receive web requests')) resolve(true);
      });
    });
    const exited = once(child, 'exit').then(() => false);
    const stop = async (): Promise<void> => {
      child.kill('SIGTERM');
      await exited;
      rmSync(folder, { recursive: true });
    };
    if (await Promise.race([up, exited])) return new Prometheus(`http://${address}`, stop);
    await stop();
    throw new Error(`prometheus did not start: ${said}`);
  }

  /** The result of a query now. @throws Error with Prometheus's message, where it cannot be evaluated */
  async query(query: string): Promise<Sample[]> {
    const { data, status, error } = await this.#get(`/api/v1/query?${new URLSearchParams({ query })}`);
    if (status !== 'success') throw new Error(`${query}: ${error}`);
    return data.result.map(({ metric, value }: { metric: Sample['metric']; value: [number, string] }) => ({
      metric,
      value: Number(value[1]),
    }));
  }

  async rules(): Promise<EvaluatedRule[]> {
    const { data } = await this.#get('/api/v1/rules');
    return data.groups.flatMap(({ rules }: { rules: EvaluatedRule[] }) => rules);
  }

  async stop(): Promise<void> {
    await this.#stop();
  }

  async #get(path: string) {
    return (await fetch(this.#url + path)).json();
  }
}
