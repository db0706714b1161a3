import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runEventOf } from '../../../src/core/recognize.ts';
import { type Projection, Projector } from '../../../src/http/sse/projection.ts';
import { positionAfter } from '../../../src/protocols/ai-sdk/cursors.ts';
import {
  endOf,
  nothingOpen,
  type Open,
  uiStream,
  uiStreamFor,
  uiStreamWithApprovals,
} from '../../../src/protocols/ai-sdk/projection.ts';
import { answerOf } from '../../../src/protocols/ai-sdk/transcript.ts';
import { busyLogs, logs } from '../../support/logs.ts';
import { expectExactRest, framesFrom, framesOf } from '../continues.ts';
import { type Chat, openChat, type Version, versionNames } from './chats.ts';

const run_id = '01990000-0000-7000-8000-000000000001';

/** The end of a stream of a log; without one, the log goes on. */
function endIn(projection: Projection<Open>, log: readonly string[]): string {
  const projector = new Projector(projection);
  for (const [index, line] of log.entries()) projector.take(line, index + 1);
  return endOf(projector.state);
}

/** What the chat of a version makes of frames. */
async function folded(version: Version, frames: readonly string[]): Promise<Chat> {
  const fetch = async (): Promise<Response> => new Response(frames.join(''));
  const chat = openChat(version, { api: 'http://unused/', id: 'chat', sends: false, fetch });
  await chat.sendMessage({ text: 'hi' });
  return chat;
}

const isFinal = (log: readonly string[]): boolean =>
  ['completed', 'failed', 'cancelled'].includes(runEventOf(log.at(-1) ?? '') ?? '');
const isFailed = (log: readonly string[]): boolean => log.at(-1)?.startsWith('{"type":"run.failed"') === true;

describe('a UI message stream', () => {
  it('goes on exactly after any frame of any log', () => expectExactRest(uiStream));

  it('with approvals goes on exactly after any frame of any log', () => expectExactRest(uiStreamWithApprovals));

  it.each(versionNames)('of any log, cut anywhere and resumed, is the same message to %s', async (version) => {
    const projections = version.startsWith('6') ? [uiStream, uiStreamWithApprovals] : [uiStream];
    await fc.assert(
      fc.asyncProperty(busyLogs, fc.nat(), fc.constantFrom(...projections), async (log, anywhere, projection) => {
        const end = endIn(projection, log);
        const whole = await folded(version, [...framesOf(projection, log), end]);
        expect([whole.status, whole.error?.message]).toEqual(
          isFailed(log) ? ['error', 'It broke.'] : ['ready', undefined],
        );
        const event = anywhere % (log.length + 1);
        const position = { event, frames: anywhere % 3 };
        const seen = framesOf(projection, log.slice(0, event));
        const own = event === 0 ? 0 : seen.length - framesOf(projection, log.slice(0, event - 1)).length;
        const before = seen.slice(0, seen.length - Math.max(0, own - position.frames));
        const rest = event === 0 ? framesOf(projection, log) : await framesFrom(projection, log, position);
        const resumed = await folded(version, [...before, ...rest, end]);
        expect(resumed.lastMessage).toEqual(whole.lastMessage);
        expect(whole.lastMessage?.id).toBe(run_id);
      }),
      { numRuns: 20 },
    );
  });

  it('whose tokens are joined is the same message, also cut after any frame and resumed', async () => {
    const projection = uiStreamFor({ approvals: false, joins: true });
    await fc.assert(
      fc.asyncProperty(busyLogs, fc.nat(), async (log, anywhere) => {
        const end = endIn(uiStream, log);
        const whole = await folded('ai', [...framesOf(uiStream, log), end]);
        const projector = new Projector(projection);
        const half = Math.ceil(log.length / 2);
        const frames = [log.slice(0, half), log.slice(half)].flatMap((lines, index) =>
          projector.piecesOf({ first: index * half + 1, lines }).flatMap(({ text }) => text.split(/(?<=\n\n)/)),
        );
        expect(frames.length).toBeLessThanOrEqual(framesOf(uiStream, log).length);
        const seen = frames.slice(0, 1 + (anywhere % frames.length));
        const rest = await framesFrom(projection, log, positionAfter(/\nid: (\S+)/.exec(seen.at(-1) ?? '')?.[1] ?? ''));
        for (const resumed of [frames, [...seen, ...rest]]) {
          expect((await folded('ai', [...resumed, end])).lastMessage).toEqual(whole.lastMessage);
        }
      }),
      { numRuns: 50 },
    );
  });

  it('is the message of the transcript', async () => {
    await fc.assert(
      fc.asyncProperty(busyLogs.filter(isFinal), async (log) => {
        const { lastMessage } = await folded('ai', [...framesOf(uiStream, log), endIn(uiStream, log)]);
        const batches = (async function* () {
          yield { first: 1, lines: log };
        })();
        expect(drawn(JSON.parse(JSON.stringify(await answerOf(run_id, batches, false))))).toEqual(drawn(lastMessage));
      }),
      { numRuns: 20 },
    );
  });

  it('has an id in every frame, with nothing to the end of the log after it', () => {
    const [log = []] = fc.sample(logs, { seed: 7, numRuns: 1 });
    for (const frame of framesOf(uiStream, log)) expect(frame).toMatch(/^data: \{.*\}\nid: \d+\.\d+\n\n$/);
    expect(endOf(nothingOpen)).toBe('data: [DONE]\n\n');
  });
});

/** Without what a chat keeps for itself. */
function drawn(message: unknown): unknown {
  const { parts, ...rest } = JSON.parse(JSON.stringify(message));
  const kept = parts.map(({ id, ...part }: { id?: string; type: string }) =>
    part.type === 'reasoning' ? part : { ...part, ...(id !== undefined && { id }) },
  );
  return { ...rest, parts: kept };
}
