import { createInterface } from 'node:readline/promises';
import { fileURLToPath } from 'node:url';
import { type Client, createClient, messageText, type Run, text } from 'rivulet/client';
import type { Observable } from 'rxjs';

/** A live UI: the output so far, each time that it grows. The client reconnects by itself. */
export const live = (client: Client, agent: string, input: string): Observable<string> =>
  client.run(agent, input).pipe(text());

/** The same as a loop that also replies when the run awaits. `print` gets each piece of text as it arrives. */
export async function talk(
  client: Client,
  agent: string,
  input: string,
  print: (piece: string) => void,
  answer: (question: string) => Promise<string>,
): Promise<Run | undefined> {
  let run: Run | undefined;
  for await (const event of client.run(agent, input)) {
    if (event.type === 'message.part' && event.part.name === undefined) print(event.part.content ?? '');
    if (event.type === 'message.completed') print('\n');
    if ('run' in event) run = event.run;
    if (event.type === 'run.awaiting') await client.resume(event.run.run_id, await answer(questionOf(event.run)));
  }
  return run;
}

const questionOf = ({ await_request }: Run): string => (await_request ? messageText(await_request.message) : '');

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [url = 'http://127.0.0.1:8000', agent = 'approve', input = 'paint the fence'] = process.argv.slice(2);
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  // At the end of its input, the example stops asking; the run still awaits a reply.
  const closed = new AbortController();
  terminal.once('close', () => closed.abort());
  const print = (piece: string): void => void process.stdout.write(piece);
  const answer = (question: string): Promise<string> => terminal.question(`${question} `, { signal: closed.signal });
  try {
    const run = await talk(createClient({ url }), agent, input, print, answer);
    process.stderr.write(`${run?.status}\n`);
    process.exitCode = run?.status === 'completed' ? 0 : 1;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    process.stderr.write(closed.signal.aborted ? '\nThere is no more input; the run awaits a reply.\n' : `${reason}\n`);
    process.exitCode = 1;
  } finally {
    terminal.close();
  }
}
