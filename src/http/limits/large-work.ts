import { performance } from 'node:perf_hooks';
import { Readable } from 'node:stream';
import type { FastifyInstance } from 'fastify';

/** Milliseconds of rest after one piece of work, at most. */
const mostRest = 100;
/** Milliseconds in which the event loop had nothing to do, after which nothing else waits for it. */
const idleEnough = 1;

/** Work that waits for its turn, oldest first. */
const waiting: (() => void)[] = [];
let isScheduled = false;
/** When the work that goes on began. */
let began = 0;
/** Until when other work has the event loop to itself, and for how long the loop had been idle when that began. */
let restsUntil = 0;
let idleBefore = 0;

/** Milliseconds for which the event loop has had nothing to do. */
const idleTime = (): number => performance.eventLoopUtilization().idle;

/**
 * Resolves when a piece of work may begin that holds the event loop for milliseconds, such as to parse or to encode a text of
 * megabytes. One begins at a time, however many wait. After each, all other work of the process has as long again, unless
 * there is none. So callers of large answers get half of the time together. `giveWay` is for many short pieces: it lets other
 * work have one turn of the event loop, and a request needs several.
 */
export function turnForLargeWork(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve);
    if (!isScheduled) scheduleNext();
  });
}

function scheduleNext(): void {
  isScheduled = true;
  if (performance.now() < restsUntil) setTimeout(next, 2 * idleEnough);
  else setImmediate(next);
}

function next(): void {
  if (performance.now() < restsUntil && idleTime() - idleBefore < idleEnough) {
    scheduleNext();
    return;
  }
  began = performance.now();
  waiting.shift()?.();
  // Its work is done within this turn of the event loop.
  setImmediate(rest);
}

function rest(): void {
  const now = performance.now();
  restsUntil = now + Math.min(mostRest, now - began);
  idleBefore = idleTime();
  if (waiting.length > 0) scheduleNext();
  else isScheduled = false;
}

/** Characters of one piece. */
const pieceChars = 64 * 1024;
/** An answer of fewer characters is written at once. */
const largeChars = 4 * pieceChars;

/**
 * Writes a large text piece by piece, each when its client has read the one before: to encode all of it would hold the event
 * loop, and keep a second copy until the client has read it.
 */
export function writeInPieces(app: FastifyInstance): void {
  app.addHook('onSend', (request, _reply, payload, next) => {
    if (typeof payload !== 'string' || payload.length < largeChars || request.method === 'HEAD') return next();
    next(null, Readable.from(piecesOf(payload), { objectMode: false }));
  });
}

function* piecesOf(text: string): Generator<string> {
  let from = 0;
  while (from < text.length) {
    let to = from + pieceChars;
    // Two halves of a character stay together: each alone would be encoded as a replacement.
    if (isHighSurrogate(text.charCodeAt(to - 1))) to += 1;
    yield text.slice(from, to);
    from = to;
  }
}

const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdbff;
