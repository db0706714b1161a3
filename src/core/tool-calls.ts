import type { TrajectoryMetadata } from '../schema/message.ts';

/** A call of a tool whose result is still to come. */
export interface OpenCall {
  /** The number of the event that began it. */
  readonly begun: number;
  readonly name: string;
  readonly tool_call_id: string | undefined;
  readonly tool_input: object;
}

/** How a call ended. Neither field: it has no result, as a step of the agent's own. */
export type ToolResult = Pick<TrajectoryMetadata, 'tool_output' | 'tool_error'>;

/** What a part says of a call: that it begins, how it ends, or both at once; neither where it only goes on. */
export interface ToolChange {
  readonly call: OpenCall;
  readonly begins: boolean;
  readonly result: ToolResult | undefined;
  /** The calls that are open after the part, oldest first. */
  readonly open: readonly OpenCall[];
}

/** Calls that are remembered. The result of an older one is a call of its own. */
const maxOpen = 200;

/** Whether a part has the result of a call. */
export const hasResult = ({ tool_output, tool_error }: ToolResult): boolean =>
  tool_output !== undefined || tool_error !== undefined;

/** Whether a part is a call whose result may follow. */
export const isCallOnly = (step: TrajectoryMetadata): boolean =>
  !hasResult(step) && step.tool_name !== undefined && step.tool_input !== undefined;

/**
 * The index of the call that a part belongs to, or -1: the one with its `tool_call_id`, or else the newest open call of its
 * tool, where one of them has no id.
 */
export function indexOfCall(
  { tool_call_id: id, tool_name }: TrajectoryMetadata,
  open: readonly { readonly name: string | undefined; readonly tool_call_id: string | undefined }[],
): number {
  const same = id === undefined ? -1 : open.findIndex((call) => call.tool_call_id === id);
  if (same >= 0) return same;
  return open.findLastIndex((call) => call.name === tool_name && (id === undefined || call.tool_call_id === undefined));
}

/** Adds a part with a `tool_name` to the calls that are open. `n`: the number of its event. */
export function toolChange(open: readonly OpenCall[], step: TrajectoryMetadata, n: number): ToolChange {
  const { tool_call_id, tool_name: name = '', tool_input, tool_output, tool_error } = step;
  const at = isCallOnly(step) && tool_call_id === undefined ? -1 : indexOfCall(step, open);
  const known = open[at];
  const call = known ?? { begun: n, name, tool_call_id, tool_input: tool_input ?? {} };
  const begins = known === undefined;
  if (isCallOnly(step)) {
    return { call, begins, result: undefined, open: begins ? [...open.slice(1 - maxOpen), call] : open };
  }
  if (!begins && !hasResult(step)) return { call, begins, result: undefined, open };
  const rest = begins ? open : open.filter((one) => one !== call);
  const result = { ...(tool_output && { tool_output }), ...(tool_error !== undefined && { tool_error }) };
  return { call, begins, result, open: rest };
}

/** The result of a call that is open when its run ends. */
export const withoutResult = (status: string): ToolResult =>
  status === 'completed' ? {} : { tool_error: 'The run ended before this call had a result.' };
