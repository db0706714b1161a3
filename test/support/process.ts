import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';

const main = resolve(import.meta.dirname, '../../dist/cli/main.js');

/** A `rivulet` process, from the build that `npm test` makes first. */
export class RivuletProcess {
  readonly child: ChildProcess;
  out = '';
  err = '';

  constructor(args: string[], env: Record<string, string> = {}, cwd?: string) {
    // A server without documentation starts a third faster, and tests start many. With other load of the machine it is
    // late at times, and would refuse runs.
    const usual = args[0] === 'serve' && !args.includes('--help') ? ['--no-docs', '--limit', 'overloadDelay=0'] : [];
    this.child = spawn(process.execPath, [main, ...args, ...usual], {
      env: { PATH: process.env.PATH ?? '', ...env },
      ...(cwd !== undefined && { cwd }),
    });
    this.child.stdout?.setEncoding('utf8').on('data', (chunk) => {
      this.out += chunk;
    });
    this.child.stderr?.setEncoding('utf8').on('data', (chunk) => {
      this.err += chunk;
    });
  }

  /** The URL that the process prints when it listens. @throws Error with its output, if it ends instead */
  async url(): Promise<string> {
    for (;;) {
      const found = /Rivulet is listening at (http:\S+)/.exec(this.out)?.[1];
      // The start-up text is one write, so with its first line all of it has arrived.
      if (found !== undefined && this.out.includes('curl')) return found;
      if (this.child.exitCode !== null) throw new Error(`rivulet ended: ${this.err || this.out}`);
      await Promise.race([once(this.child.stdout ?? this.child, 'data'), once(this.child, 'exit')]);
    }
  }

  /** Resolves to the exit code, or the signal that ended it. */
  async ended(): Promise<number | string | null> {
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, 'close');
    return this.child.exitCode ?? this.child.signalCode;
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | string | null> {
    this.child.kill(signal);
    return this.ended();
  }
}
