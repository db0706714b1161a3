import { isDeepStrictEqual } from 'node:util';
import {
  defer,
  EMPTY,
  filter,
  finalize,
  firstValueFrom,
  from,
  type Observable,
  of,
  skipWhile,
  switchMap,
  tap,
} from 'rxjs';
import type { Client } from '../../client/client.ts';
import { ClientError } from '../../client/client-error.ts';
import { questionText } from '../../core/parts.ts';
import { isFinal } from '../../core/run-state.ts';
import { problemsOf } from '../../forms/reply-form.ts';
import type { Event } from '../../schema/event.ts';
import type { AwaitRequest, Run, RunStatus } from '../../schema/run.ts';
import { defaultUrl } from '../addresses.ts';
import { type Connection, connect } from '../connect.ts';
import { exit } from '../exit-codes.ts';
import { ArtifactFolder, isArtifact, saveArtifact } from './artifacts.ts';
import { shellQuote } from './format.ts';
import { expectedReply, type FieldValues, labelOf, promptReply } from './reply.ts';
import { type ReadLine, terminal } from './terminal.ts';
import { Transcript } from './transcript.ts';

export interface FollowOptions extends Connection {
  readonly json?: boolean;
  readonly out?: string;
  readonly retries: number;
}

export interface FollowRange {
  /** Number of the last event that was already printed. */
  readonly after?: number;
  /** Events at the beginning that are not printed, up to the first for which it returns false. */
  readonly skip?: (event: Event) => boolean;
  /** What Ctrl-C does: cancel the run, or stop watching it. */
  readonly onInterrupt: 'cancel' | 'leave';
}

/** Prints the events of a run, prompts for the replies that it awaits, and determines the exit code. */
export class RunFollower {
  readonly client: Client;
  readonly #options: FollowOptions;
  #interrupts = 0;

  constructor(options: FollowOptions) {
    this.#options = options;
    this.client = connect(options, options.retries);
  }

  /** Resolves to the exit code when the run is final, or awaits a reply that cannot be prompted for. */
  async follow(run_id: string, { after = 0, skip = () => false, onInterrupt }: FollowRange): Promise<number> {
    const { json, out } = this.#options;
    const folder = out === undefined ? undefined : new ArtifactFolder(out);
    const transcript = new Transcript(terminal, folder);
    let cursor = after;
    this.#interrupts = 0;
    const onSigint = (): void => this.#interrupt(run_id, onInterrupt);
    process.on('SIGINT', onSigint);
    try {
      const exitCode = await firstValueFrom(
        this.client.watch(run_id, { after }).pipe(
          tap(() => {
            cursor += 1;
          }),
          skipWhile((event) => skip(event) && !('run' in event && isFinal(event.run.status))),
          tap((event) => (json ? printJson(event, folder) : transcript.show(event))),
          // The next event aborts a prompt: another client has replied, or the run is final.
          switchMap((event): Observable<number> => this.#exitCodeAfter(event)),
        ),
        { defaultValue: undefined },
      );
      // Without a value, `after` was the last event of a final run.
      const code = exitCode ?? this.#exitCodeOf((await this.client.get(run_id)).status);
      return code === exit.completed && folder !== undefined && folder.failures > 0 ? exit.failed : code;
    } catch (error) {
      if (error instanceof ClientError && error.retryable) {
        terminal.note(
          `The run goes on. To resume watching: ${this.command(`watch ${shellQuote(run_id)} --after ${cursor}`)}`,
        );
      }
      throw error;
    } finally {
      transcript.close();
      process.off('SIGINT', onSigint);
    }
  }

  #exitCodeAfter(event: Event): Observable<number> {
    if (!('run' in event)) return EMPTY;
    const { run } = event;
    if (isFinal(run.status)) return of(this.#exitCodeOf(run.status));
    if (run.status !== 'awaiting') return EMPTY;
    return defer(() => {
      const abort = new AbortController();
      return from(this.#reply(run, abort.signal)).pipe(
        filter((code) => code !== undefined),
        finalize(() => abort.abort()),
      );
    });
  }

  #exitCodeOf(status: RunStatus): number {
    if (status === 'completed') return exit.completed;
    if (status === 'failed') return exit.failed;
    return this.#interrupts > 0 ? exit.interrupted : exit.cancelled;
  }

  /** Prompts for the reply to an await request. Resolves to an exit code if there is no reply. */
  async #reply(awaiting: Run, signal: AbortSignal): Promise<number | undefined> {
    const { run_id } = awaiting;
    // The log also has await requests that were answered long ago.
    const { await_request } = await this.client.get(run_id, { signal });
    if (await_request === undefined || !isDeepStrictEqual(await_request, awaiting.await_request)) return undefined;
    const question = questionText(await_request);
    terminal.note(question, 'bold');
    const replied =
      terminal.interactive &&
      (await terminal.withPrompt(signal, (readLine) => this.#promptUntilAccepted(run_id, await_request, readLine)));
    if (replied || signal.aborted) return undefined;
    const resume = `resume ${shellQuote(run_id)}`;
    if (terminal.interactive) {
      terminal.note(`The run awaits a reply; to be asked again: ${this.command(resume)}`, 'yellow');
      return exit.awaiting;
    }
    const [sample, expected] =
      await_request.schema === undefined ? ['your answer', []] : ['{…}', expectedReply(await_request)];
    terminal.note(`The run awaits a reply: ${this.command(`${resume} '${sample}'`)}`, 'yellow');
    if (expected.length > 0) terminal.note(expected.join('\n'));
    return exit.awaiting;
  }

  /** Resolves to true when the server has accepted a reply, to false if the terminal has no more input. */
  async #promptUntilAccepted(run_id: string, request: AwaitRequest, readLine: ReadLine): Promise<boolean> {
    const values: FieldValues = new Map();
    const note = (text: string, style?: 'red'): void => terminal.note(text, style);
    for (;;) {
      const reply = await promptReply(request, { readLine, note }, values);
      if (reply === undefined) {
        terminal.leavePromptLine();
        return false;
      }
      try {
        await this.client.resume(run_id, reply);
        return true;
      } catch (error) {
        // 409: another client has replied first; the next events show that reply.
        if (error instanceof ClientError && error.status === 409) return true;
        if (!(error instanceof ClientError) || !(error.retryable || error.status === 422)) throw error;
        for (const { path, text } of problemsOf(error)) {
          values.delete(path);
          terminal.note(`The reply was refused: ${path === '' ? '' : `${labelOf({}, path)} `}${text}`, 'red');
        }
      }
    }
  }

  // The first Ctrl-C cancels and waits for the server; the second exits at once.
  #interrupt(run_id: string, onInterrupt: FollowRange['onInterrupt']): void {
    terminal.leavePromptLine();
    this.#interrupts += 1;
    if (onInterrupt === 'leave') {
      terminal.note(`The run goes on; to cancel it: ${this.command(`cancel ${shellQuote(run_id)}`)}`);
      process.exit(exit.interrupted);
    }
    if (this.#interrupts > 1) process.exit(exit.interrupted);
    terminal.note('Cancelling; press Ctrl-C again to exit at once.', 'yellow');
    this.client.cancel(run_id).catch((error: Error) => {
      if (error instanceof ClientError && error.status === 409) return;
      terminal.note(`The run could not be cancelled: ${error.message}`, 'red');
    });
  }

  /** A command line for this server, as a project runs it that has Rivulet among its packages. */
  command(words: string): string {
    const { url } = this.#options;
    return `npx rivulet ${words}${url === defaultUrl ? '' : ` --url ${shellQuote(url)}`}`;
  }
}

/** Artifacts are saved with `--json`, too. */
function printJson(event: Event, folder: ArtifactFolder | undefined): void {
  terminal.json(event);
  if (folder === undefined || event.type !== 'message.part' || !isArtifact(event.part)) return;
  terminal.note(saveArtifact(event.part, folder), 'cyan');
}
