import { defineAgent, textOf } from 'rivulet';
import { filter, lastValueFrom, map } from 'rxjs';

interface Count {
  readonly messages: number;
  readonly words: number;
}

/**
 * A stateful agent. What it has to remember is in the session, not in a variable: it outlives a
 * restart, and two conversations never see each other's.
 *
 * - `state` is one JSON value of the agent's own making; a session without one has `undefined`.
 * - `history` has the messages so far. It is read when the agent subscribes to it.
 */
export default defineAgent(
  {
    name: 'counter',
    description: 'Counts the messages and words of a session, and remembers the last thing said.',
    input_content_types: ['text/plain'],
    output_content_types: ['text/plain'],
    metadata: { license: 'MIT', programming_language: 'TypeScript', tags: ['example', 'stateful'] },
  },
  // An agent may be an async generator as well: handy where one thing comes after another.
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

    // Last, because it counts at once: a run that fails before this line has not been counted.
    await session.setState(count);
  },
);
