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
import type { Client } from '../client/client.ts';
import { ClientError } from '../client/client-error.ts';
import { isFinal } from '../core/run-state.ts';
import type { Event } from '../schema/event.ts';
import type { AwaitRequest, Run, RunStatus } from '../schema/run.ts';
import { ArtifactFolder, isArtifact, keep } from './artifacts.ts';
import { askFor, type Typed } from './ask.ts';
import { type Connection, connect } from './connect.ts';
import { exit } from './exit-codes.ts';
import { defaultUrl } from './options.ts';
import { shellWord } from './printable.ts';
import { type ReadLine, terminal } from './terminal.ts';
import { Transcript } from './transcript.ts';

export interface FollowOptions extends Connection {
  readonly json?: boolean;
  readonly out?: string;
  readonly retries: number;
}

export interface Place {
  /** Id of the last event already seen. */
  readonly after?: number;
  /** Which of the first events not to show. */
  readonly skip?: (event: Event) => boolean;
  /** What Ctrl-C does: ends the run, or only the watching. */
  readonly interrupt: 'cancel' | 'leave';
}

/** Follows runs on the terminal: shows what comes, asks the person what the run asks, knows the exit code. */
export class Followed {
  readonly client: Client;
  readonly #options: FollowOptions;
  #interrupts = 0;

  constructor(options: FollowOptions) {
    this.#options = options;
    this.client = connect(options, options.retries);
  }

  /** Resolves to the exit code when the run is over, or asks what nobody here can answer. */
  async follow(run_id: string, { after = 0, skip = () => false, interrupt }: Place): Promise<number> {
    const { json, out } = this.#options;
    const folder = out === undefined ? undefined : new ArtifactFolder(out);
    const transcript = new Transcript(terminal, folder);
    let seen = after;
    const onInterrupt = (): void => this.#interrupted(run_id, interrupt);
    process.on('SIGINT', onInterrupt);
    try {
      const code = await firstValueFrom(
        this.client.watch(run_id, { after }).pipe(
          tap(() => {
            seen += 1;
          }),
          skipWhile((event) => skip(event) && !('run' in event && isFinal(event.run.status))),
          tap((event) => (json ? showJson(event, folder) : transcript.show(event))),
          // Whatever comes next withdraws a question: somebody else has answered it, or the run is over.
          switchMap((event): Observable<number> => this.#outcome(event)),
        ),
        { defaultValue: undefined },
      );
      // After the last event of a run that is over, there is nothing left to see.
      const ended = code ?? this.#over((await this.client.get(run_id)).status);
      return ended === exit.completed && folder !== undefined && folder.lost > 0 ? exit.failed : ended;
    } catch (error) {
      if (error instanceof ClientError && error.retryable) {
        terminal.note(
          `The run goes on. To come back to it: ${this.#command(`watch ${shellWord(run_id)} --after ${seen}`)}`,
        );
      }
      throw error;
    } finally {
      process.off('SIGINT', onInterrupt);
    }
  }

  #outcome(event: Event): Observable<number> {
    if (!('run' in event)) return EMPTY;
    const { run } = event;
    if (isFinal(run.status)) return of(this.#over(run.status));
    if (run.status !== 'awaiting') return EMPTY;
    return defer(() => {
      const withdrawn = new AbortController();
      return from(this.#answer(run, withdrawn.signal)).pipe(
        filter((code) => code !== undefined),
        finalize(() => withdrawn.abort()),
      );
    });
  }

  #over(status: RunStatus): number {
    if (status === 'completed') return exit.completed;
    if (status === 'failed') return exit.failed;
    return this.#interrupts > 0 ? exit.interrupted : exit.cancelled;
  }

  /** Answers what the run asks; an exit code where nobody does. */
  async #answer(asked: Run, withdrawn: AbortSignal): Promise<number | undefined> {
    const { run_id } = asked;
    // The log also has the questions of long ago.
    const { await_request } = await this.client.get(run_id, { signal: withdrawn });
    if (await_request === undefined || !isDeepStrictEqual(await_request, asked.await_request)) return undefined;
    const question = await_request.message.parts.map(({ content }) => content ?? '').join('');
    terminal.note(question, 'bold');
    const { interactive } = terminal;
    const answered =
      interactive && (await terminal.prompting(withdrawn, (read) => this.#reply(run_id, await_request, read)));
    if (answered || withdrawn.aborted) return undefined;
    terminal.note(
      `The run waits for an answer: ${this.#command(`resume ${shellWord(run_id)} 'your answer'`)}`,
      'yellow',
    );
    return exit.awaiting;
  }

  /** Until the server takes a reply; false where there is none. */
  async #reply(run_id: string, request: AwaitRequest, read: ReadLine): Promise<boolean> {
    const typed: Typed = new Map();
    for (;;) {
      const reply = await askFor(request, read, typed);
      if (reply === undefined) {
        terminal.disturbed();
        return false;
      }
      try {
        await this.client.resume(run_id, reply);
        return true;
      } catch (error) {
        // Somebody was quicker, and what follows shows their answer.
        if (error instanceof ClientError && error.status === 409) return true;
        if (!(error instanceof ClientError) || !(error.retryable || error.status === 422)) throw error;
        terminal.note(`That did not do: ${error.message}`, 'red');
      }
    }
  }

  // The second one is for who will not wait any longer, whatever the server does.
  #interrupted(run_id: string, interrupt: Place['interrupt']): void {
    terminal.disturbed();
    this.#interrupts += 1;
    if (interrupt === 'leave') {
      terminal.note(`The run goes on; to end it: ${this.#command(`cancel ${shellWord(run_id)}`)}`);
      process.exit(exit.interrupted);
    }
    if (this.#interrupts > 1) process.exit(exit.interrupted);
    terminal.note('Cancelling; Ctrl-C again leaves at once.', 'yellow');
    this.client.cancel(run_id).catch((error: Error) => {
      if (error instanceof ClientError && error.status === 409) return;
      terminal.note(`It could not be cancelled: ${error.message}`, 'red');
    });
  }

  #command(words: string): string {
    const { url } = this.#options;
    return `rivulet ${words}${url === defaultUrl ? '' : ` --url ${shellWord(url)}`}`;
  }
}

/** Artifacts are saved with `--json`, too. */
function showJson(event: Event, folder: ArtifactFolder | undefined): void {
  terminal.json(event);
  if (folder === undefined || event.type !== 'message.part' || !isArtifact(event.part)) return;
  terminal.note(keep(event.part, folder), 'cyan');
}
