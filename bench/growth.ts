/**
 * Does a token cost more in a long run than in a short one? `npm run bench:growth`
 *
 * Executes the same number of tokens as many short runs and as few long ones, on the engine over HTTP
 * (a real server, read as a stream), and prints CPU time per token. The ratio is the result: absolute
 * figures depend on the machine. Work is interleaved and repeated, and medians are printed.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, defineAgent } from 'rivulet';
import { concatMap, map, range } from 'rxjs';

const total = 40_000;
const lengths = [200, 2_000, 20_000];
const repeats = 5;

// Ten tokens a turn of the event loop: a stream that arrives in pieces, as real ones do.
const tokens = defineAgent({ name: 'tokens', description: 'Emits tokens.' }, (input) => {
  const count = Number(input[0]?.parts[0]?.content);
  return range(0, count / 10).pipe(
    concatMap((n) => new Promise<number>((resolve) => setImmediate(resolve, n))),
    concatMap((n) => range(n * 10, 10)),
    map((n) => `token ${n} `),
  );
});

const median = (values: number[]): number => values.sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

async function microsecondsPerToken(url: string, length: number): Promise<number> {
  const before = process.cpuUsage();
  for (let run = 0; run < total / length; run += 1) {
    const response = await fetch(`${url}/runs`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ agent_name: 'tokens', mode: 'stream', input: [{ parts: [{ content: String(length) }] }] }),
    });
    let bytes = 0;
    for await (const chunk of response.body ?? []) bytes += chunk.length;
    if (bytes < length * 80) throw new Error(`a stream of ${length} tokens had only ${bytes} bytes`);
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / total;
}

const folder = mkdtempSync(join(tmpdir(), 'rivulet-bench-'));
for (const store of ['memory:', `sqlite:${join(folder, 'bench.db')}`]) {
  const app = await createServer({ agents: [tokens], store, docs: false });
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  const figures = new Map(lengths.map((length) => [length, [] as number[]]));
  for (let repeat = 0; repeat <= repeats; repeat += 1) {
    for (const length of lengths) {
      const figure = await microsecondsPerToken(url, length);
      // The first round is for the compiler.
      if (repeat > 0) figures.get(length)?.push(figure);
    }
  }
  await app.close();
  const base = median(figures.get(200) ?? []);
  for (const [length, values] of figures) {
    const figure = median(values);
    const row = [
      store.split(':')[0]?.padEnd(7),
      `${length}`.padStart(6),
      'tokens a run:',
      figure.toFixed(2).padStart(6),
    ];
    console.log(...row, 'CPU-µs a token, client included,', `${(figure / base).toFixed(2)}× of 200`);
  }
}
rmSync(folder, { recursive: true });
