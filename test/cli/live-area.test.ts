import { expect, it, onTestFinished, vi } from 'vitest';
import { type Frame, LiveArea } from '../../src/cli/terminal/live-area.ts';
import { screenOf } from '../support/screen.ts';

/** An area on a screen of 20 columns and 5 rows. */
function areaOf(frame: () => Frame) {
  vi.useFakeTimers();
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const stream = {
    columns: 20,
    rows: 5,
    text: '',
    write: (text: string): void => {
      stream.text += text;
    },
  };
  // The area uses only these members of a stream.
  const area = new LiveArea(stream as unknown as NodeJS.WriteStream, frame);
  return { area, stream, screen: () => screenOf(stream.text, 20, 5) };
}
const next = (): void => void vi.advanceTimersByTime(100);

it('draws its lines again when they change, once for many changes', () => {
  let lines = ['one', 'two'];
  const { area, stream, screen } = areaOf(() => ({ above: [], lines, moves: false }));
  area.changed();
  area.changed();
  next();
  expect(screen()).toEqual(['one', 'two']);
  const { length } = stream.text;
  area.changed();
  next();
  expect(stream.text).toHaveLength(length);
  lines = ['three'];
  area.changed();
  next();
  expect(screen()).toEqual(['three']);
  expect(vi.getTimerCount()).toBe(0);
});

it('prints what is final above the lines', () => {
  let above = ['first'];
  const { area, stream, screen } = areaOf(() => ({ above: above.splice(0), lines: ['live'], moves: false }));
  area.changed();
  next();
  area.above(() => stream.write('note\n'));
  above = ['second'];
  next();
  expect(screen()).toEqual(['first', 'note', 'second', 'live']);
  area.close();
  expect(screen()).toEqual(['first', 'note', 'second', '']);
});

it('draws frames as long as a spinner moves, and none after it is closed', () => {
  let frame = 0;
  const { area, screen } = areaOf(() => ({ above: [], lines: [String(frame++)], moves: true }));
  area.changed();
  next();
  const [first] = screen();
  next();
  expect(screen()).not.toEqual([first]);
  area.close();
  expect(vi.getTimerCount()).toBe(0);
});

it('draws the last lines of many, because it cannot erase what has left the screen', () => {
  let lines = Array.from({ length: 50 }, (_, index) => `line ${index}`);
  const { area, screen } = areaOf(() => ({ above: [], lines, moves: false }));
  area.changed();
  next();
  expect(screen()).toEqual(['line 47', 'line 48', 'line 49']);
  lines = ['end'];
  area.changed();
  next();
  expect(screen()).toEqual(['end']);
});

it('erases all rows of lines that a narrower window has wrapped', () => {
  const { area, stream } = areaOf(() => ({ above: [], lines: ['123456789012345'], moves: false }));
  area.changed();
  next();
  stream.columns = 5;
  area.close();
  expect(stream.text.endsWith('\u001b[2A\r\u001b[J')).toBe(true);
});
