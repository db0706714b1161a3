import { Value } from '@sinclair/typebox/value';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { utcOf } from '../../src/schema/formats.ts';
import { DateTime, Email, HttpUrl, Uri } from '../../src/schema/scalars.ts';

describe('a date and time', () => {
  it.each([
    ['2026-01-31T12:00:00Z', '2026-01-31T12:00:00Z'],
    ['2026-01-31T12:00:00.5Z', '2026-01-31T12:00:00.5Z'],
    ['2026-01-31T12:00:00.123456789+02:00', '2026-01-31T10:00:00.123456789Z'],
    ['2026-03-01T00:30:00+01:00', '2026-02-28T23:30:00Z'],
    ['2024-02-29T00:00:00Z', '2024-02-29T00:00:00Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
  ])('%s is %s in UTC', (given, utc) => {
    expect(utcOf(given)).toBe(utc);
    expect(Value.Check(DateTime, given)).toBe(true);
  });

  it.each([
    ['a leap second', '2016-12-31T23:59:60Z'],
    ['a day that the month has not', '2026-02-30T00:00:00Z'],
    ['a leap day of another year', '2025-02-29T00:00:00Z'],
    ['a year after 9999, in UTC', '9999-12-31T23:59:59-01:00'],
    ['the year 0, in UTC', '0001-01-01T00:00:00+01:00'],
    ['no offset', '2026-01-01T00:00:00'],
    ['an endless fraction', `2026-01-01T00:00:00.${'1'.repeat(10)}Z`],
    ['a day without a time', '2026-01-01'],
    ['a text', 'now'],
  ])('is refused: %s', (_, given) => {
    expect(utcOf(given)).toBeUndefined();
    expect(Value.Check(DateTime, given)).toBe(false);
  });

  it('is converted to the same moment in UTC, and fits its own schema', () => {
    const offset = fc.tuple(
      fc.constantFrom('+', '-'),
      fc.integer({ min: 0, max: 23 }),
      fc.integer({ min: 0, max: 59 }),
    );
    const two = (n: number): string => String(n).padStart(2, '0');
    const moment = fc.date({ min: new Date('0002-01-01'), max: new Date('9998-12-31'), noInvalidDate: true });
    fc.assert(
      fc.property(moment, offset, (date, [sign, hours, minutes]) => {
        const given = `${date.toISOString().slice(0, -1)}${sign}${two(hours)}:${two(minutes)}`;
        const utc = utcOf(given) ?? '';
        expect(Date.parse(utc)).toBe(Date.parse(given));
        expect(utcOf(utc)).toBe(utc);
      }),
    );
  });
});

describe('an address', () => {
  it.each([
    ['https://example.com/a?b#c', true],
    ['data:text/plain,hi', true],
    ['urn:isbn:1', true],
    ['http://[::1]:80/', true],
    ['/a', false],
    ['a.png', false],
    ['example.com', false],
    ['//example.com', false],
    ['http://', false],
    ['http://[', false],
    [' https://example.com', false],
    ['https://exam\nple.com', false],
    ['https://example.com/\ud83c', false],
    ['https://example.com/\udf0a?\u{1f30a}', false],
    ['https://example.com/\u{1f30a}', true],
    ['', false],
  ])('%j is an absolute URI: %s', (text, is) => {
    expect(Value.Check(Uri, text)).toBe(is);
    expect(Value.Check(HttpUrl, text)).toBe(is && text.startsWith('http'));
  });

  it.each([
    ['ada@example.com', true],
    ["o'neil+a_b.c@mail.example.co.uk", true],
    ['ada@localhost', false],
    ['example.com', false],
    ['a..b@example.com', false],
    ['a@b@example.com', false],
    ['a b@example.com', false],
    [`${'a'.repeat(250)}@b.cd`, false],
  ])('%j is an e-mail address: %s', (text, is) => {
    expect(Value.Check(Email, text)).toBe(is);
  });
});
