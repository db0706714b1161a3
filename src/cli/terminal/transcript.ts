import { reasonOf } from '../../client/client-error.ts';
import { answerText } from '../../client/operators.ts';
import { cutOffNotes, cutOffOf, isInterrupted } from '../../core/cut-off.ts';
import { callOf } from '../../core/parts.ts';
import { isFinal } from '../../core/run-state.ts';
import type { Event, RunEvent } from '../../schema/event.ts';
import type { CitationMetadata, Message, MessagePart } from '../../schema/message.ts';
import type { Run } from '../../schema/run.ts';
import { type Answer, MarkdownAnswer, PlainAnswer } from './answer.ts';
import { type ArtifactFolder, isArtifact, saveArtifact } from './artifacts.ts';
import { formatDuration, oneLine } from './format.ts';
import { type Frame, LiveArea } from './live-area.ts';
import { type EndedStep, progressBar, progressOf, progressText, type Step, Steps } from './steps.ts';
import type { Style, Terminal } from './terminal.ts';

/** Shorter times are left out: they are those of a log that is read again, not of the step. */
const shortest = 100; // milliseconds

/** The frames of the spinner, and how long each is shown. */
const spinner = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const spinnerTime = 80;
/** Milliseconds without output after which the spinner shows that the run goes on. */
const quiet = 300;

/**
 * Prints a run for people: the answer as it arrives, steps while they happen, citations as footnotes, artifacts by name,
 * and at the end the time and the size. On a terminal with colours the answer is rendered Markdown, and running steps are
 * drawn in place; elsewhere each is a line.
 */
export class Transcript {
  readonly #terminal: Terminal;
  readonly #folder: ArtifactFolder | undefined;
  readonly #steps = new Steps();
  #live: LiveArea | undefined;
  #answer: Answer;
  /** The agent of the run; messages of other agents are those that it has called. */
  #agent: string | undefined;
  #called: string | undefined;
  #hasText = false;
  /** Whether the answer has text that no note has followed. */
  #isOpen = false;
  /** What was printed last. */
  #last: 'nothing' | 'text' | 'note' = 'nothing';
  /** The text of the current message; citations refer to positions in it. */
  #text = '';
  #citations: CitationMetadata[] = [];
  #parts = 0;
  #createdAt: string | undefined;
  /** When the run began to work on its first part, or on what follows a reply; undefined once there is some output. */
  #waitsSince: number | undefined;
  /** Milliseconds from the run's beginning to its first message, after the times in the log. */
  #firstAfter: number | undefined;
  #printedProgress = '';

  /** Artifacts are saved in the folder, if there is one. */
  constructor(terminal: Terminal, folder?: ArtifactFolder) {
    this.#terminal = terminal;
    this.#folder = folder;
    this.#answer = this.#newAnswer();
  }

  show(event: Event, now = Date.now()): void {
    const before = this.#steps.running;
    const ended = this.#steps.next(event, now);
    if (this.#steps.running.length > 0) this.#live ??= this.#openLive();
    for (const step of ended) this.#ended(step);
    if (this.#live === undefined) {
      for (const step of this.#steps.running) if (!before.includes(step)) this.#started(step);
    }
    if ('run' in event) this.#run(event.run, now);
    else this.#event(event);
    this.#live?.changed();
  }

  #event(event: Exclude<Event, RunEvent>): void {
    switch (event.type) {
      case 'message.created':
        this.#begun(event.message);
        return;
      case 'message.part':
        this.#part(event.part);
        return;
      case 'message.completed':
        this.#completed(event.message);
        return;
      case 'generic':
        if (progressOf(event) === undefined && callOf(event.generic) === undefined)
          this.#note(oneLine(`event ${JSON.stringify(event.generic)}`));
        return;
      case 'error':
        this.#note(`${event.error.message} (${reasonOf(event.error)})`, 'red');
        return;
      default:
        // A newer server may have more types.
        event satisfies never;
    }
  }

  /** Ends the lines that are drawn in place. More events may follow, for instance after a reply. */
  close(): void {
    this.#flush();
    this.#terminal.closeLive();
    this.#live = undefined;
  }

  #openLive(): LiveArea | undefined {
    return this.#terminal.openLive((out) => new LiveArea(out, (columns) => this.#frame(columns)));
  }

  #run(run: Run, now: number): void {
    this.#agent ??= run.agent_name;
    this.#createdAt ??= run.created_at;
    const works = run.status === 'created' || run.status === 'in-progress';
    this.#waitsSince = works ? (this.#waitsSince ?? now) : undefined;
    if (works && this.#terminal.rich) this.#live ??= this.#openLive();
    if (run.status === 'awaiting') this.#pause();
    else if (isFinal(run.status)) this.#end(run);
  }

  #completed(message: Message): void {
    this.#footnotes();
    const interrupted = isInterrupted(message);
    if (interrupted) this.#note('Interrupted, and said again below.', 'yellow');
    const cutOff = cutOffOf(message);
    if (cutOff !== undefined) this.#note(cutOffNotes[cutOff], 'yellow');
    if (this.#called === undefined) return;
    const { created_at, completed_at } = message;
    const time = typeof completed_at === 'string' ? Date.parse(completed_at) - Date.parse(created_at ?? '') : 0;
    if (!interrupted) this.#note(oneLine(`✓ ${this.#called}${timeOf(time)}`));
    this.#called = undefined;
    this.#answer = this.#newAnswer();
  }

  #begun({ role, created_at = '' }: Message): void {
    this.#flush();
    this.#firstAfter ??= Date.parse(created_at) - Date.parse(this.#createdAt ?? '');
    this.#text = '';
    this.#called =
      this.#agent === undefined || role === `agent/${this.#agent}` ? undefined : role.replace(/^agent\//, '');
    if (this.#called !== undefined) this.#note(oneLine(`▸ ${this.#called}`), 'bold', '');
    this.#answer = this.#newAnswer();
  }

  #part(part: MessagePart): void {
    this.#parts += 1;
    const { metadata } = part;
    const text = answerText(part);
    if (text !== '') this.#printText(text);
    if (metadata?.kind === 'trajectory') return;
    this.#waitsSince = undefined;
    if (metadata?.kind === 'citation') {
      this.#citations.push(metadata);
      this.#answer.mark(`[${this.#citations.length}]`, metadata.end_index);
    } else if (isArtifact(part)) this.#note(saveArtifact(part, this.#folder), 'cyan');
  }

  #printText(text: string): void {
    if (!this.#terminal.rich) {
      // A blank line between messages, as in the client's text().
      if (this.#text === '' && this.#hasText) {
        this.#terminal.endLine();
        this.#terminal.answer('\n');
      }
    } else if (!this.#isOpen && text.trim() !== '') {
      this.#isOpen = true;
      if (this.#last !== 'nothing') this.#terminal.painted(['']);
    }
    this.#live ??= this.#terminal.rich ? this.#openLive() : undefined;
    this.#hasText = true;
    this.#last = 'text';
    this.#text += text;
    this.#answer.add(text);
  }

  #flush(): void {
    this.#answer.flush();
    this.#isOpen = false;
  }

  #newAnswer(): Answer {
    return this.#terminal.rich ? new MarkdownAnswer(this.#terminal, this.#indent) : new PlainAnswer(this.#terminal);
  }

  /** The output of called agents is indented. */
  get #indent(): string {
    return this.#called === undefined ? '' : '  ';
  }

  #note(text: string, style: Style = 'dim', indent = this.#indent): void {
    this.#flush();
    if (this.#last === 'text' && this.#terminal.rich && this.#terminal.shared) this.#terminal.painted(['']);
    this.#last = 'note';
    this.#terminal.note(`${indent}${text}`, style);
  }

  #started({ text, progress }: Step): void {
    if (progress === undefined) {
      this.#note(oneLine(text));
      return;
    }
    // Not each of a thousand: where the message changes, or another tenth is done.
    const { message, done = 0, total } = progress;
    const shown = `${message} ${total === undefined ? '' : Math.floor((done / total) * 10)}`;
    if (shown === this.#printedProgress) return;
    this.#printedProgress = shown;
    this.#note(oneLine(progressText(progress)));
  }

  #ended({ text, milliseconds = 0, ok, hasOutput }: EndedStep): void {
    // Elsewhere the step is a line already.
    if (this.#live === undefined && !hasOutput) return;
    const sign = this.#live === undefined ? '' : `${ok ? '✓' : '✗'} `;
    this.#note(`${sign}${oneLine(text, 280)}${timeOf(milliseconds)}`, ok ? 'dim' : 'red');
  }

  #frame(columns: number): Frame {
    const now = Date.now();
    const { running } = this.#steps;
    const growing: string[] = [];
    const above: string[] = [];
    if (this.#answer instanceof MarkdownAnswer) {
      above.push(...this.#answer.final(columns));
      growing.push(...this.#answer.growing(columns));
    }
    const sign = spinner[Math.floor(now / spinnerTime) % spinner.length] ?? '';
    const steps = running.map(({ text, startedAt, progress }) => {
      const bar = progress && progressBar(progress);
      const words = [progress?.message ?? text, bar && `${bar} ${progress?.done ?? 0}/${progress?.total}`];
      const line = `${this.#indent}${sign} ${words.filter(Boolean).join(' ')}${timeOf(now - startedAt)}`;
      return this.#terminal.paint(oneLine(line, Math.max(columns - 1, 10)), 'cyan');
    });
    const since = this.#waitsSince;
    const waits = since !== undefined && running.length === 0;
    if (waits && now - since >= quiet)
      steps.push(this.#terminal.paint(`${sign} ${this.#agent}${timeOf(now - since)}`, 'cyan'));
    const lines = growing.length > 0 && steps.length > 0 ? [...growing, '', ...steps] : [...growing, ...steps];
    return { above, lines, moves: waits || running.length > 0 };
  }

  #footnotes(): void {
    for (const [index, { title, url, description, start_index, end_index }] of this.#citations.entries()) {
      const cited = end_index === undefined ? undefined : this.#text.slice(start_index ?? 0, end_index);
      const quoted = description ?? cited;
      const source = [title, url, quoted && `“${quoted.trim()}”`].filter(Boolean).join(', ');
      this.#note(oneLine(`[${index + 1}] ${source}`));
    }
    this.#citations = [];
  }

  #pause(): void {
    this.#footnotes();
    this.close();
    this.#terminal.endLine();
  }

  #end(run: Run): void {
    this.#pause();
    const { status, error, cancel_reason, created_at, finished_at, usage } = run;
    const time = finished_at === undefined ? undefined : Date.parse(finished_at) - Date.parse(created_at);
    const parts = `${this.#parts} ${this.#parts === 1 ? 'part' : 'parts'}`;
    const size = usage === undefined ? parts : `${usage.tokens} tokens`;
    const first = this.#firstAfter ?? 0;
    const times = [
      ...(time === undefined ? [] : [formatDuration(time)]),
      ...(first >= shortest && this.#terminal.isTerminal ? [`the first after ${formatDuration(first)}`] : []),
    ];
    const after = ` [${[...times, size].join(', ')}]`;
    if (status === 'failed') {
      const reason = error === undefined ? 'no reason was given' : `${error.message} (${reasonOf(error)})`;
      this.#note(`The run failed: ${reason}${after}`, 'red');
    } else if (status === 'cancelled') {
      const why = cancel_reason === undefined ? '' : `: ${cancel_reason}`;
      this.#note(`The run was cancelled${why}.${after}`, 'yellow');
    } else this.#note(`Completed${after}.`);
  }
}

const timeOf = (milliseconds: number): string => (milliseconds < shortest ? '' : ` ${formatDuration(milliseconds)}`);
