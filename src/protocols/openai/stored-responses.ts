import { fail } from '../../core/errors.ts';
import type { AgentRequest } from '../../core/request.ts';
import type { Access } from '../../engine/access.ts';
import { type Projection, Projector } from '../../http/sse/projection.ts';
import { startOf } from '../turns.ts';
import { turnOfResponse } from './ids.ts';
import type { Item } from './items.ts';
import { type Echo, echoOf, responseObject } from './response-object.ts';
import { type CurrentResponse, type ResponsesState, responsesProjection } from './responses-projection.ts';

/** A run in the words of Responses. */
export interface ProjectedRun {
  readonly echo: Echo;
  readonly projection: Projection<ResponsesState>;
}

/** A response of a log. */
export interface StoredResponse {
  readonly response: CurrentResponse;
  /** The response that its run is in now, which is a later one where the run has been resumed since. */
  readonly current: CurrentResponse;
  readonly run_id: string;
  readonly session_id: string | undefined;
  /** The number of the last event of the log. */
  readonly last: number;
  /** The response as JSON. */
  readonly object: string;
}

/** A run that was made with a request. */
export function projectedWith(request: AgentRequest): ProjectedRun {
  const echo = echoOf(request);
  return { echo, projection: responsesProjection(echo) };
}

/** The caller checks with its next read that it may see the run. @throws RivuletError `run_unknown`, `log_removed` */
export const projectedRun = async (own: Access, run_id: string): Promise<ProjectedRun> =>
  projectedWith(await own.request(run_id));

/** @throws RivuletError `run_unknown`, `log_removed` */
export async function readResponse(own: Access, id: string): Promise<StoredResponse> {
  const turn = turnOfResponse(id);
  const { run_id } = turn;
  const { echo, projection } = await projectedRun(own, run_id);
  const projector = new Projector(projection);
  let response: CurrentResponse | undefined;
  let last = 0;
  for await (const { first, lines } of await own.stream(run_id, {
    seen: startOf(turn).event,
    until: 'now',
    keeps: false,
  })) {
    for (const [index, line] of lines.entries()) {
      last = first + index;
      projector.take(line, last);
      const { response: current } = projector.state;
      if (current?.id === id) response = current;
    }
  }
  const { run, response: current } = projector.state;
  if (response === undefined || current === undefined) throw fail('run_unknown', id);
  const object = own.count(responseObject(echo, response));
  return { response, current, run_id, session_id: run?.session_id, last, object };
}

/** Adds the items of a run's output, by their ids. @throws RivuletError `run_unknown`, `log_removed` */
export async function readItems(own: Access, run_id: string, items: Map<string, Item>): Promise<void> {
  const { projection } = await projectedRun(own, run_id);
  const projector = new Projector(projection);
  const add = ({ response }: ResponsesState): void => {
    const output: (Item & { readonly id: string })[] = JSON.parse(own.count(`[${response?.output ?? ''}]`));
    for (const item of output) items.set(item.id, item);
  };
  for await (const { first, lines } of await own.stream(run_id, { until: 'now', keeps: false })) {
    for (const [index, line] of lines.entries()) {
      const before = projector.state;
      projector.take(line, first + index);
      if (projector.state.response?.id !== before.response?.id) add(before);
    }
  }
  add(projector.state);
}
