import { pathOf } from '../client/http.ts';
import { fail } from '../core/errors.ts';
import { parsedWithout, reasonOf } from '../core/json.ts';
import { compile } from '../core/validate.ts';
import { fromTexts } from '../http/requests/from-texts.ts';
import {
  AgentsQuery,
  ResourceParams,
  RunAgainRequest,
  RunCreateRequest,
  RunHeaders,
  RunParams,
  RunResumeRequest,
  RunsQuery,
  SessionParams,
} from '../schema/api.ts';

// The checks of calls within this process: those that a server makes of requests.

export const checks = {
  create: compile(RunCreateRequest, 'body'),
  resume: compile(RunResumeRequest, 'body'),
  again: compile(RunAgainRequest, 'body'),
  headers: compile(RunHeaders, 'headers'),
  run: compile(RunParams, 'path'),
  session: compile(SessionParams, 'path'),
  resource: compile(ResourceParams, 'path'),
  runs: compile(RunsQuery, 'query'),
  agents: compile(AgentsQuery, 'query'),
};

export function runIn(run_id: string): string {
  pathOf('runs', run_id);
  return checks.run({ run_id }).run_id.toLowerCase();
}

export function sessionIn(session_id: string): string {
  pathOf('sessions', session_id);
  return checks.session({ session_id }).session_id.toLowerCase();
}

/** The filter of a list or a feed, as a URL would carry it. */
export const runsQuery = (filter: RunsQuery): RunsQuery => checks.runs(fromTexts(RunsQuery, textsOf(filter)));

export const agentsQuery = (page: AgentsQuery): AgentsQuery => checks.agents(fromTexts(AgentsQuery, textsOf(page)));

/** The values that are defined, as text: what a URL or headers would carry. */
export const textsOf = (values: object): Record<string, string> =>
  Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [[name, `${value}`]])),
  );

/** @throws RivuletError `body_not_json` */
export function jsonOf(body: object): string {
  try {
    return JSON.stringify(body);
  } catch (error) {
    throw fail('body_not_json', reasonOf(error).replace(/\.$/, ''));
  }
}

/** Refuses the keys that the parser of a server refuses. @throws RivuletError `body_not_json` */
export const bodyIn = (text: string): unknown =>
  parsedWithout(text, () => {
    throw fail('body_not_json', 'it has the key __proto__ or constructor.prototype');
  });
