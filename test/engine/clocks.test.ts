import { expect, it } from 'vitest';
import { wireClock } from '../../src/engine/time/clocks.ts';

it('the clock of the wire says the same as a Date, also when it is set back', () => {
  let time = 0;
  const clock = wireClock(() => time);
  const times = [
    0, 1, 999, 1_000, 1_009, 1_010, 1_099, 59_999, 60_000, 999, -1, 1_790_000_000_123, 253_402_300_799_999,
  ];
  for (time of [...times, ...times]) expect(clock()).toBe(new Date(time).toISOString());
  for (let step = 0; step < 5_000; step += 1) {
    time = 1_789_999_998_000 + step;
    expect(clock()).toBe(new Date(time).toISOString());
  }
});
