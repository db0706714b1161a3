import type { Message } from '../client/client.ts';
import type { Question, Run } from '../schema/run.ts';
import type { Note, RunNotes } from './run-notes.ts';

/** A piece of a run in the conversation. `position` is the number of messages before it. */
export type FlowItem = { readonly position: number } & (
  | { readonly kind: 'message'; readonly message: Message; readonly notes: readonly Note[] }
  | { readonly kind: 'question'; readonly question: Question; readonly open: boolean }
  | { readonly kind: 'notes'; readonly notes: readonly Note[] }
);

/** The messages and questions of a run, and its notes, in the order of its log. */
export function flowOf({ output, questions = [], await_request }: Run, recorded: RunNotes | undefined): FlowItem[] {
  const items: FlowItem[] = [];
  let asked = 0;
  for (let position = 0; position <= output.length; position += 1) {
    const all = recorded?.of(position) ?? [];
    const between = all.filter((note) => note.position === undefined);
    // The same list as before where all notes are in the message: views compare by identity.
    const within = between.length === 0 ? all : all.filter((note) => note.position !== undefined);
    const addNotes = (): void => {
      const notes = between.filter((note) => note.questions === asked);
      if (notes.length > 0) items.push({ kind: 'notes', position, notes });
    };
    addNotes();
    for (let question = questions[asked]; question?.position === position; question = questions[asked]) {
      asked += 1;
      const open = await_request !== undefined && asked === questions.length && question.reply === undefined;
      items.push({ kind: 'question', position, question, open });
      addNotes();
    }
    const message = output[position];
    if (message !== undefined) items.push({ kind: 'message', position, message, notes: within });
  }
  return items;
}
