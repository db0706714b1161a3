import { AgentError, errorOf } from '../core/errors.ts';
import { cut } from '../core/json.ts';

// What the failure of a call means: whether it was made, and what the agent is told.

/** Characters of what a server says of a refusal. */
const maxMessage = 2_000;
/** Errors of the SDK about an answer that came, and that it does not understand. */
const unreadable = new Set<unknown>(['INVALID_RESULT', 'UNSUPPORTED_RESULT_TYPE', 'CLIENT_HTTP_UNEXPECTED_CONTENT']);

/** A call that may have been made, and has no result. `cause`: what cut it off. */
export function unknownOutcome(tool: string, cause: string): AgentError {
  const problem = `was cut off by ${cause}, and may or may not have taken effect; check that before you call it again`;
  return new AgentError('tool_call_unknown', `The call of the tool ${tool} ${problem}.`);
}

/** The error of a call that failed; `sent` where it was handed to the connection. */
export function failureOf(tool: string, error: unknown, sent: boolean): AgentError {
  const code = fieldOf(error, 'code');
  // The code of a JSON-RPC error is a number: the server has refused the call.
  if (typeof code === 'number') return new AgentError('tool_refused', cut(errorOf(error).message, maxMessage));
  const status = fieldOf(error, 'status');
  if (sent && code === 'REQUEST_TIMEOUT') return new AgentError('tool_timeout', `The tool ${tool} took too long.`);
  if (sent && mayHaveArrived(error)) return unknownOutcome(tool, causeOf(error, code, status));
  const problem = typeof status === 'number' ? `refuses to serve it: HTTP status ${status}` : 'does not answer';
  return new AgentError('tool_unreachable', `The server of the tool ${tool} ${problem}.`);
}

/**
 * Whether the server may have begun a call that failed: the connection was made, and it has not refused the request. An
 * error of the server, or of a gateway before it, may come after the call.
 */
function mayHaveArrived(error: unknown): boolean {
  if (!(error instanceof Error)) return true;
  const status = fieldOf(error, 'status');
  if (typeof status === 'number' && status < 500) return false;
  if (/^(connect|getaddrinfo)$/.test(String(fieldOf(error, 'syscall')))) return false;
  return error.cause === undefined || mayHaveArrived(error.cause);
}

function causeOf(error: unknown, code: unknown, status: unknown): string {
  if (typeof status === 'number') return `HTTP status ${status}`;
  const isUnreadable = error instanceof SyntaxError || fieldOf(error, 'name') === 'ZodError' || unreadable.has(code);
  return isUnreadable ? "an answer that is no tool's result" : 'a broken connection';
}

const fieldOf = (error: unknown, name: string): unknown =>
  error instanceof Error ? Reflect.get(error, name) : undefined;
