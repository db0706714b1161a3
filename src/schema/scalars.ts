import { type Static, Type } from '@sinclair/typebox';

// Patterns rather than `format`: a format works only after somebody registered it globally,
// and a schema that a user imports has to work by itself.

/** A UUID of any version, in any case on input; always lower case on output. */
export const Uuid = Type.String({
  pattern: '^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$',
  description: 'UUID; any case is accepted, lower case is answered',
});
export type Uuid = Static<typeof Uuid>;

/** An ISO 8601 timestamp. Rivulet writes UTC with a `Z`; other offsets are accepted and converted. */
export const DateTime = Type.String({
  pattern:
    '^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])T([01]\\d|2[0-3]):[0-5]\\d:([0-5]\\d|60)(\\.\\d+)?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)$',
  description: 'ISO 8601 date and time, UTC with a Z',
});
export type DateTime = Static<typeof DateTime>;

/** An absolute http(s) address. */
export const HttpUrl = Type.String({
  pattern: '^https?://[^\\s]+$',
  maxLength: 8_192,
  description: 'absolute http(s) URL',
});
export type HttpUrl = Static<typeof HttpUrl>;

/** A media type such as `text/plain` or `image/png; q=1`. */
export const MediaType = Type.String({ minLength: 1, maxLength: 255, description: 'media type, such as text/plain' });
export type MediaType = Static<typeof MediaType>;
