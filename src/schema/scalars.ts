import { type Static, Type } from '@sinclair/typebox';
import './formats.ts';

// Descriptions are phrases that follow "expected" in error messages.

/** A UUID of any version, in any case on input; always lower case on output. */
export const Uuid = Type.String({
  format: 'rivulet:uuid',
  description: 'a UUID, such as 7d9f3c1e-4b5a-4c6d-8e7f-0a1b2c3d4e5f',
});
export type Uuid = Static<typeof Uuid>;

/** An ISO 8601 timestamp. Rivulet writes UTC with a `Z`; other offsets are accepted and converted. */
export const DateTime = Type.String({
  format: 'rivulet:date-time',
  description: 'an ISO 8601 date and time of the years 1 to 9999, such as 2026-01-31T12:00:00Z',
});
export type DateTime = Static<typeof DateTime>;

/** An absolute address of any scheme. */
export const Uri = Type.String({
  format: 'rivulet:uri',
  description: 'an absolute URI, such as https://example.com/a',
});
export type Uri = Static<typeof Uri>;

/** An absolute http(s) address. */
export const HttpUrl = Type.String({
  pattern: '^https?://',
  maxLength: 8_192,
  format: 'rivulet:uri',
  description: 'an absolute http or https URL',
});
export type HttpUrl = Static<typeof HttpUrl>;

/** An address that mail can be sent to. */
export const Email = Type.String({
  format: 'rivulet:email',
  maxLength: 254,
  description: 'an e-mail address, such as ada@example.com',
});
export type Email = Static<typeof Email>;

/** A media type such as `text/plain` or `image/png; q=1`. */
export const MediaType = Type.String({ minLength: 1, maxLength: 255, description: 'a media type, such as text/plain' });
export type MediaType = Static<typeof MediaType>;
