import { type Static, Type } from '@sinclair/typebox';

/** The three codes of the protocol. Published clients refuse an Error with another code, and with it the whole run. */
export const ErrorCode = Type.Union(
  [Type.Literal('server_error'), Type.Literal('invalid_input'), Type.Literal('not_found')],
  { $id: 'ErrorCode' },
);
export type ErrorCode = Static<typeof ErrorCode>;

/** The body of every response that is not 2xx, and the `error` of a failed run. */
export const ErrorBody = Type.Object(
  {
    code: ErrorCode,
    message: Type.String(),
    data: Type.Optional(
      Type.Record(Type.String(), Type.Unknown(), {
        description:
          'reason: the precise kind of an error of the server’s, as docs/errors.md lists them. code: the code that the ' +
          'agent gave its error, where it is not one of the three. An agent’s own data stands beside them',
      }),
    ),
  },
  { $id: 'Error', description: 'what went wrong' },
);
export type ErrorBody = Static<typeof ErrorBody>;
