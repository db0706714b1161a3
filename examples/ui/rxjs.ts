import { type Client, createClient, messageText, type Run, toRun } from 'rivulet/client';
import {
  catchError,
  concatMap,
  connect,
  EMPTY,
  exhaustMap,
  fromEvent,
  ignoreElements,
  map,
  merge,
  type Observable,
  of,
  scan,
  share,
  startWith,
  switchMap,
  take,
} from 'rxjs';

/** A message of the user and the output so far. */
interface Turn {
  readonly question: string;
  readonly answer: string;
}

/** The turns of a session, each time that they change. `inputs` is hot: while a run awaits, the next message is the reply. */
export function chat(client: Client, agent: string, inputs: Observable<string>): Observable<readonly Turn[]> {
  const session_id = crypto.randomUUID();
  const reply = ({ run_id, status }: Run): Observable<unknown> =>
    status === 'awaiting'
      ? inputs.pipe(
          take(1),
          concatMap((text) => client.resume(run_id, text)),
        )
      : EMPTY;
  return inputs.pipe(
    exhaustMap((question, nth) =>
      client.run(agent, question, { session_id }).pipe(
        toRun(),
        connect((run) => merge(run, run.pipe(switchMap(reply), ignoreElements()))),
        map(answerOf),
        catchError((error: Error) => of(error.message)),
        startWith('…'),
        map((answer) => ({ nth, turn: { question, answer } })),
      ),
    ),
    scan((turns: readonly Turn[], { nth, turn }) => [...turns.slice(0, nth), turn], []),
  );
}

function answerOf({ output, await_request, error }: Run): string {
  const messages = await_request === undefined ? output : [...output, await_request.message];
  const texts = messages.map(messageText);
  return [...texts, ...(error === undefined ? [] : [error.message])].join('\n\n');
}

const form = document.forms[0];
const answers = document.getElementById('answers');
if (form && answers) {
  const agent = new URLSearchParams(location.search).get('agent') ?? 'echo';
  const inputs = fromEvent(form, 'submit').pipe(
    map((event) => {
      event.preventDefault();
      const text = String(new FormData(form).get('text'));
      form.reset();
      return text;
    }),
    // One form handler for all subscribers.
    share(),
  );
  const paragraph = (text: string) => Object.assign(document.createElement('p'), { textContent: text });
  chat(createClient({ url: '/' }), agent, inputs).subscribe((turns) =>
    answers.replaceChildren(...turns.flatMap(({ question, answer }) => [paragraph(question), paragraph(answer)])),
  );
}
