import { describe, expect, it } from 'vitest';
import { titleOf } from '../../src/core/messages.ts';
import type { MessagePart } from '../../src/schema/message.ts';

const now = '2026-01-01T00:00:00.000Z';
const titled = (...parts: MessagePart[]): string =>
  titleOf([{ role: 'user', parts, created_at: now, completed_at: now }]);

describe('the title of an input', () => {
  it('is its text on one line, without control characters', () => {
    expect(
      titled({ content: ' Plan\n\na\ttrip\u0000 \u001b[31mto ' }, { content: 'Rome ', content_type: 'text/plain' }),
    ).toBe('Plan a trip [31mto Rome');
  });

  it('leaves out files and JSON, and is empty where there is no text', () => {
    expect(
      titled({ content: 'AAAA', content_encoding: 'base64' }, { content: '{}', content_type: 'application/json' }),
    ).toBe('');
  });

  it('has 120 characters at most, and no half of a pair', () => {
    expect(titled({ content: 'x'.repeat(1_000_000) })).toBe(`${'x'.repeat(119)}…`);
    const cut = titled({ content: `${'x'.repeat(118)}${'😀'.repeat(50)}` });
    expect([cut.length, encodeURIComponent(cut)]).toEqual([119, expect.stringMatching(/x%E2%80%A6$/)]);
  });
});
