import { type Client, createClient, type Run, textOf, toRun } from 'rivulet/client';
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

/** What was said, and what came of it so far. */
interface Turn {
  readonly question: string;
  readonly answer: string;
}

/** A conversation, each time that it grows. `said` is hot: what a run asks is answered with what is said next. */
export function chat(client: Client, agent: string, said: Observable<string>): Observable<readonly Turn[]> {
  const session_id = crypto.randomUUID();
  const reply = ({ run_id, status }: Run): Observable<unknown> =>
    status === 'awaiting'
      ? said.pipe(
          take(1),
          concatMap((text) => client.resume(run_id, text)),
        )
      : EMPTY;
  return said.pipe(
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
  const texts = messages.map(textOf);
  return [...texts, ...(error === undefined ? [] : [error.message])].join('\n\n');
}

const form = document.forms[0];
const answers = document.getElementById('answers');
if (form && answers) {
  const agent = new URLSearchParams(location.search).get('agent') ?? 'echo';
  const said = fromEvent(form, 'submit').pipe(
    map((event) => {
      event.preventDefault();
      const text = String(new FormData(form).get('text'));
      form.reset();
      return text;
    }),
    // One reading of the form, however many listen.
    share(),
  );
  const paragraph = (text: string) => Object.assign(document.createElement('p'), { textContent: text });
  chat(createClient({ url: '/' }), agent, said).subscribe((turns) =>
    answers.replaceChildren(...turns.flatMap(({ question, answer }) => [paragraph(question), paragraph(answer)])),
  );
}
