import type { Part, StreamResponse, Task } from '@a2a-js/sdk';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { TaskPieces } from '../../src/remote/a2a-task.ts';
import type { Piece } from '../../src/remote/remote-run.ts';
import { extension } from '../../src/schema/a2a-extension.ts';

const part = (content: Part['content'], metadata?: Part['metadata']): Part => ({
  content,
  metadata,
  filename: '',
  mediaType: '',
});
const text = (value: string): Part => part({ $case: 'text', value });

interface Update {
  readonly artifactId: string;
  readonly part: Part;
}

const update = fc.record({
  artifactId: fc.constantFrom('a', 'b', 'c'),
  part: fc.oneof(
    fc.string({ minLength: 1, maxLength: 5 }).map(text),
    fc.integer().map((value) => part({ $case: 'data', value })),
  ),
});

const frameOf = ({ artifactId, part }: Update, append: boolean): StreamResponse => ({
  payload: {
    $case: 'artifactUpdate',
    value: {
      taskId: 't',
      contextId: 'c',
      artifact: { artifactId, name: '', description: '', parts: [part], metadata: undefined, extensions: [] },
      append,
      lastChunk: false,
      metadata: undefined,
    },
  },
});

/** The task after all updates, as a server answers it. */
function snapshotOf(updates: readonly Update[], state: number, message?: Task['history'][number]): StreamResponse {
  const artifacts = [...new Set(updates.map(({ artifactId }) => artifactId))].map((artifactId) => ({
    artifactId,
    name: '',
    description: '',
    parts: updates.filter((one) => one.artifactId === artifactId).map((one) => one.part),
    metadata: undefined,
    extensions: [],
  }));
  const status = { state, message, timestamp: '2026-01-01T00:00:00Z' };
  const value: Task = { id: 't', contextId: 'c', status, artifacts, history: [], metadata: undefined };
  return { payload: { $case: 'task', value } };
}

/** What a reader has of each artifact. */
function contentsOf(pieces: readonly Piece[]): Map<string, string> {
  const contents = new Map<string, string>();
  for (const piece of pieces) {
    if (piece.type !== 'part' || piece.of === undefined) continue;
    contents.set(piece.of, `${contents.get(piece.of) ?? ''}${piece.part.content}`);
  }
  return contents;
}

const framesOf = (updates: readonly Update[]): StreamResponse[] =>
  updates.map((one, index) =>
    frameOf(
      one,
      updates.slice(0, index).some(({ artifactId }) => artifactId === one.artifactId),
    ),
  );

it('gets exactly the rest of a task from a snapshot, after any update, also in another process', () => {
  fc.assert(
    fc.property(fc.array(update, { maxLength: 12 }), fc.nat(), fc.boolean(), (updates, at, crashed) => {
      const had = at % (updates.length + 1);
      const first = new TaskPieces();
      const before = [snapshotOf([], 2), ...framesOf(updates.slice(0, had))].flatMap((frame) => first.of(frame));
      const reader = crashed ? new TaskPieces() : first;
      for (const piece of before) reader.take(piece);
      const rest = reader.of(snapshotOf(updates, 3));
      const whole = new TaskPieces().of(snapshotOf(updates, 3));
      expect(contentsOf([...before, ...rest])).toEqual(contentsOf(whole));
      expect(rest.at(-1)).toMatchObject({ type: 'completed' });
    }),
  );
});

it('has the questions, steps, citations and errors of a Rivulet server, and its positions', () => {
  const message = (metadata: object): Task['history'][number] => ({
    messageId: 'm',
    contextId: 'c',
    taskId: 't',
    role: 2,
    parts: [text('Said.')],
    metadata: { ...metadata },
    extensions: [],
    referenceTaskIds: [],
  });
  const only = (frame: StreamResponse): Piece | undefined => new TaskPieces().of(frame).at(-1);
  const schema = { type: 'boolean' };
  expect(only(snapshotOf([], 6, message({ [extension.question]: { schema } })))).toMatchObject({
    type: 'question',
    request: { schema, message: { parts: [{ content: 'Said.' }] } },
  });
  expect(only(snapshotOf([], 2, message({ [extension.step]: { toolName: 'look' } })))).toMatchObject({
    part: { metadata: { kind: 'trajectory', tool_name: 'look' } },
  });
  const error = { code: 'invalid_input', data: { code: 'own' } };
  expect(only(snapshotOf([], 4, message({ [extension.error]: error })))).toMatchObject({
    type: 'failed',
    error: { ...error, message: 'Said.' },
  });
  const cited = part(
    { $case: 'text', value: '' },
    { [extension.citation]: { startIndex: 1, url: 'https://a.example/' } },
  );
  const frame = frameOf({ artifactId: 'a', part: cited }, false);
  if (frame.payload?.$case === 'artifactUpdate') frame.payload.value.metadata = { [extension.cursor]: '7.1' };
  expect(only(frame)).toMatchObject({
    at: '7.1',
    part: { metadata: { kind: 'citation', start_index: 1, url: 'https://a.example/' } },
  });
});

it('ends an artifact as interrupted where a snapshot says so, once', () => {
  const task = new TaskPieces();
  const begun = [snapshotOf([], 2), frameOf({ artifactId: 'a', part: text('The cat ') }, false)];
  for (const frame of begun) task.of(frame);
  const snapshot = snapshotOf(
    [
      { artifactId: 'a', part: text('The cat ') },
      { artifactId: 'b', part: text('The dog') },
    ],
    2,
  );
  if (snapshot.payload?.$case !== 'task') throw new Error('expected a task');
  const [cat] = snapshot.payload.value.artifacts;
  if (cat !== undefined) cat.metadata = { [extension.interrupted]: true };
  expect(task.of(snapshot)).toMatchObject([
    { type: 'end-of-message', reason: 'interrupted' },
    { type: 'part', of: 'b' },
  ]);
  expect(task.of(snapshot)).toEqual([]);
});

it('leaves out empty texts, and begins a message where an artifact begins anew', () => {
  const task = new TaskPieces();
  const types = [text('One'), text('')]
    .map((each) => frameOf({ artifactId: 'a', part: each }, false))
    .flatMap((frame) => task.of(frame))
    .map(({ type }) => type);
  expect(types).toEqual(['run', 'part', 'replaced']);
});
