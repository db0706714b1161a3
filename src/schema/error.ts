import { type Static, Type } from '@sinclair/typebox';

/** The body of every answer that is not 2xx, and the `error` of a failed run. */
export const ErrorBody = Type.Object(
  {
    code: Type.String({ description: 'server_error, invalid_input, not_found, or one of the agent’s own' }),
    message: Type.String(),
    data: Type.Optional(Type.Unknown()),
  },
  { $id: 'Error' },
);
export type ErrorBody = Static<typeof ErrorBody>;
