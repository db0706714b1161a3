import { defineAgent, textOf } from 'rivulet';
import { filter, lastValueFrom, map } from 'rxjs';

interface Count {
  readonly messages: number;
  readonly words: number;
}

/**
 * A stateful agent. Its state is in the session, not in a variable: it survives a restart, and each session has its own.
 *
 * - `state` is one JSON value that the agent sets; `undefined` in a new session.
 * - `history` is an Observable of the session's messages. They are read when it is subscribed to.
 */
export default defineAgent(
  {
    name: 'counter',
    description: 'Counts the messages and words of a session, and remembers the last thing said.',
    input_content_types: ['text/plain'],
    output_content_types: ['text/plain'],
    metadata: { license: 'MIT', programming_language: 'TypeScript', tags: ['example', 'stateful'] },
  },
  // An agent may be an async generator, which is convenient for sequential work.
  async function* (input, { session }) {
    const before = (await session.state<Count>()) ?? { messages: 0, words: 0 };
    const words = textOf(input).match(/\S+/g) ?? [];
    const count: Count = { messages: before.messages + input.length, words: before.words + words.length };

    yield `Message ${count.messages}; words so far: ${count.words}.`;

    const fromUser = session.history.pipe(
      filter(({ role }) => role === 'user'),
      map(textOf),
    );
    const last = await lastValueFrom(fromUser, { defaultValue: undefined });
    if (last !== undefined) yield ` Before this you said: ${last}`;

    // Last, because it takes effect at once: a run that fails before is not counted.
    await session.setState(count);
  },
);
