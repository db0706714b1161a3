import { ClientError } from '../../client/client-error.ts';
import type { PartInput } from '../../client/input.ts';
import { withAgent } from '../connect.ts';
import { exit, UsageError } from '../exit-codes.ts';
import { ArtifactFolder, isArtifact, makeArtifactFolder, saveArtifact } from '../terminal/artifacts.ts';
import { oneLine, suggestion } from '../terminal/format.ts';
import { InputHistory, readInput } from '../terminal/input.ts';
import { type FollowOptions, RunFollower } from '../terminal/run-follower.ts';
import { terminal } from '../terminal/terminal.ts';
import { resume } from './follow.ts';

export interface ChatOptions extends FollowOptions {
  readonly session?: string;
}

/** Runs of a session whose files `/files` lists: the newest. */
const maxRuns = 100;

interface ChatCommand {
  readonly usage: string;
  readonly does: string;
  /** Resolves to an exit code where the command ends the chat. */
  readonly run: (argument: string) => Promise<number | undefined>;
}

/** A conversation with an agent on the terminal: one session, a run for each message. */
export async function chat(agent: string, options: ChatOptions): Promise<number> {
  if (!terminal.interactive) {
    throw new UsageError(
      'chat needs a terminal; "rivulet run AGENT TEXT --session ID" runs one turn of a conversation',
    );
  }
  await makeArtifactFolder(options.out);
  return new Chat(agent, options).converse();
}

class Chat {
  readonly #agent: string;
  readonly #options: ChatOptions;
  readonly #follower: RunFollower;
  readonly #history = new InputHistory();
  #session: string | undefined;
  #attached: PartInput[] = [];
  /** The run whose question was left open. */
  #awaiting: string | undefined;

  constructor(agent: string, options: ChatOptions) {
    this.#agent = agent;
    this.#options = options;
    this.#follower = new RunFollower(options);
    this.#session = options.session;
  }

  async converse(): Promise<number> {
    const { client } = this.#follower;
    const { description } = await withAgent(client, this.#agent, () => client.agent(this.#agent));
    terminal.note(oneLine(`${this.#agent}: ${description}`), 'bold');
    terminal.note('Type a message, or /help. A line that ends with \\ goes on in the next one. Ctrl-D leaves.');
    let interrupted = false;
    for (;;) {
      const typed = await terminal.readMessage(`${this.#agent} > `, this.#history.lines, Object.keys(this.#commands));
      if (typed === 'closed') return this.#quit();
      if (typed === 'interrupted') {
        if (interrupted) return exit.interrupted;
        terminal.note('Press Ctrl-C again, or Ctrl-D, to leave.', 'yellow');
      }
      interrupted = typed === 'interrupted';
      if (typeof typed === 'string' || typed.text.trim() === '') continue;
      this.#history.add(typed.text);
      const code = await this.#reported(() => this.#take(typed.text.trim()));
      if (code !== undefined) return code;
    }
  }

  /** A command, or a message; `//` begins a message with a slash. */
  async #take(text: string): Promise<number | undefined> {
    if (!text.startsWith('/') || text.startsWith('//')) return this.#turn(text.replace(/^\/\//, '/'));
    const [, name = '', argument = ''] = /^(\/\S*)\s*(.*)$/s.exec(text) ?? [];
    const command = this.#commands[name];
    if (command !== undefined) return command.run(argument.trim());
    throw new UsageError(`there is no command ${name}.${suggestion(name, Object.keys(this.#commands))}`);
  }

  // A failed run ends its turn, not the conversation.
  async #turn(text: string): Promise<undefined> {
    const { client } = this.#follower;
    const session = this.#session === undefined ? {} : { session_id: this.#session };
    const started = await client.start(this.#agent, [text, ...this.#attached], session);
    this.#attached = [];
    this.#session = started.session_id;
    terminal.note('');
    const code = await this.#follower.follow(started.run_id, { onInterrupt: 'cancel' });
    terminal.note('');
    this.#leftOpen(started.run_id, code);
    return undefined;
  }

  #leftOpen(run_id: string, code: number): void {
    this.#awaiting = code === exit.awaiting ? run_id : undefined;
    if (this.#awaiting !== undefined) terminal.note('/answer asks again.', 'yellow');
  }

  readonly #commands: Readonly<Record<string, ChatCommand>> = {
    '/help': { usage: '', does: 'lists the commands', run: async () => this.#help() },
    '/new': { usage: '', does: 'begins a new conversation', run: async () => this.#new() },
    '/attach': { usage: ' PATH', does: 'sends a file with the next message', run: (path) => this.#attach(path) },
    '/files': {
      usage: ' [FOLDER]',
      does: 'lists the files of the conversation, or saves them',
      run: (to) => this.#files(to),
    },
    '/answer': { usage: '', does: 'goes back to a question that was left open', run: () => this.#answer() },
    '/session': { usage: '', does: 'prints how to go on later', run: async () => this.#printSession() },
    '/quit': { usage: '', does: 'leaves; so does Ctrl-D', run: async () => this.#quit() },
  };

  #help(): undefined {
    const lines = Object.entries(this.#commands).map(
      ([name, { usage, does }]) => `  ${`${name}${usage}`.padEnd(17)}${does}`,
    );
    terminal.note(
      [
        ...lines,
        '  //TEXT           sends a text that begins with a slash',
        '  Ctrl-C           cancels the run; a second one leaves',
      ].join('\n'),
    );
  }

  #new(): undefined {
    this.#session = undefined;
    this.#attached = [];
    this.#awaiting = undefined;
    terminal.note('A new conversation.');
  }

  async #attach(path: string): Promise<undefined> {
    if (path === '') throw new UsageError('/attach needs the path of a file');
    this.#attached = [...this.#attached, ...(await readInput(undefined, [path]))];
    terminal.note(`${path} goes with the next message.`);
  }

  // From the server, so that a conversation that is continued has all of its files.
  async #files(folder: string): Promise<undefined> {
    const { client } = this.#follower;
    const { runs } =
      this.#session === undefined ? { runs: [] } : await client.runs({ session_id: this.#session, limit: maxRuns });
    const into = folder === '' ? undefined : new ArtifactFolder(folder);
    let count = 0;
    for (const { run_id } of runs.toReversed()) {
      const { output } = await client.get(run_id);
      for (const part of output.flatMap(({ parts }) => parts).filter(isArtifact)) {
        terminal.note(saveArtifact(part, into), 'cyan');
        count += 1;
      }
    }
    if (count === 0) terminal.note('There are no files yet.');
  }

  async #answer(): Promise<undefined> {
    if (this.#awaiting === undefined) throw new UsageError('no question is open');
    this.#leftOpen(this.#awaiting, await resume(this.#awaiting, undefined, this.#options));
  }

  #printSession(): undefined {
    if (this.#session === undefined) terminal.note('The conversation begins with the first message.');
    else terminal.note(`To go on later: ${this.#follower.command(`chat ${this.#agent} --session ${this.#session}`)}`);
  }

  #quit(): number {
    if (this.#session !== undefined) this.#printSession();
    return exit.completed;
  }

  /** Errors of the server, and wrong commands, do not end the conversation. */
  async #reported(work: () => Promise<number | undefined>): Promise<number | undefined> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof ClientError || error instanceof UsageError)) throw error;
      terminal.error(`rivulet: ${error.message}`);
      return undefined;
    }
  }
}
