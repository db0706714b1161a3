import { LRUCache } from 'lru-cache';
import { fail } from '../../core/errors.ts';
import type { AgentRequest } from '../../core/request.ts';
import type { Access } from '../../engine/access.ts';
import { type Projection, Projector } from '../../http/sse/projection.ts';
import type { ProtocolOptions } from '../protocol.ts';
import { startOf } from '../turns.ts';
import { turnOfResponse } from './ids.ts';
import type { Item } from './items.ts';
import { type Echo, echoOf, responseObject } from './response-object.ts';
import { type CurrentResponse, type ResponsesState, responsesProjection } from './responses-projection.ts';

/** What the routes of responses share. */
export interface ResponseOptions extends ProtocolOptions {
  readonly responses: StoredResponses;
}

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

/** Characters of requests that are kept for runs that are being read. */
const maxChars = 4 * 1024 * 1024;

/** Reads responses from logs. Readers of one run share a projection, and so its frames. */
export class StoredResponses {
  readonly #projected = new LRUCache<string, ProjectedRun>({
    max: 1_000,
    maxSize: maxChars,
    sizeCalculation: ({ echo }) => echo.fields.length + 1,
  });

  /** A run that was made with a request. */
  add(run_id: string, request: AgentRequest): ProjectedRun {
    const echo = echoOf(request);
    const projected = { echo, projection: responsesProjection(echo) };
    this.#projected.set(run_id, projected);
    return projected;
  }

  /** The caller checks with its next read that it may see the run. @throws RivuletError `run_unknown`, `log_removed` */
  async projected(own: Access, run_id: string): Promise<ProjectedRun> {
    return this.#projected.get(run_id) ?? this.add(run_id, await own.request(run_id));
  }

  /** @throws RivuletError `run_unknown`, `log_removed` */
  async read(own: Access, id: string): Promise<StoredResponse> {
    const turn = turnOfResponse(id);
    const { run_id } = turn;
    const { echo, projection } = await this.projected(own, run_id);
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
  async readItems(own: Access, run_id: string, items: Map<string, Item>): Promise<void> {
    const { projection } = await this.projected(own, run_id);
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

  /** A run was deleted. */
  forget(run_id: string): void {
    this.#projected.delete(run_id);
  }
}
