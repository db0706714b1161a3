import type { Principal } from '../../core/principal.ts';
import { runEventOf } from '../../core/recognize.ts';
import type { Access } from '../../engine/access.ts';
import type { Signatures } from '../../http/auth/signatures.ts';
import type { AwaitRequest, RunDetails } from '../../schema/run.ts';
import { cancelOpen } from '../replies.ts';
import { runPlaceIds } from '../run-place.ts';

/** The ids of the requests by which older clients are asked within a stream. */
export const requestIds = runPlaceIds('', ':');

// Why a run is cancelled, as its final event has it.
export const notAnswered = 'its question was not answered';
export const cannotAsk =
  'the agent asks a question, and this client has not declared that it can show forms (elicitation)';

/** The id of a question within its run. */
export const questionId = ({ id = '1' }: AwaitRequest): string => id;

/** What a run asks, while it awaits the reply to this question. @throws RivuletError `run_unknown`, `log_removed` */
export async function openQuestion(own: Access, run_id: string, question: string): Promise<AwaitRequest | undefined> {
  const { status, await_request }: RunDetails = JSON.parse(await own.details(run_id));
  const isOpen = status === 'awaiting' && await_request !== undefined && questionId(await_request) === question;
  return isOpen ? await_request : undefined;
}

/**
 * Cancels a run whose client cannot be asked as soon as it asks, whatever it asks: it would await a reply for as long as it
 * may. A reply that comes by another way does not keep it, as its client could not be asked the next question either.
 */
export async function cancelOnceAsked(own: Access, run_id: string, from: number): Promise<void> {
  try {
    for await (const { lines } of await own.stream(run_id, { after: from, until: 'settled', keeps: false })) {
      if (runEventOf(lines.at(-1) ?? '') === 'awaiting') await cancelOpen(own, run_id, undefined, cannotAsk);
    }
  } catch {
    // The answer of the call has the error.
  }
}

// What a modern client gives back with the reply to a question: the run and the question, signed for the tool and the
// caller, so that no other caller answers it.

export interface Asked {
  readonly run_id: string;
  /** The id of the question within its run. */
  readonly question: string;
}

const purpose = 'mcp question';
const places = runPlaceIds('', '.');

const textOf = ({ run_id, question }: Asked, tool: string, { id, kind }: Principal): string =>
  JSON.stringify([run_id, question, tool, kind, id]);

export const requestState = (signatures: Signatures, asked: Asked, tool: string, principal: Principal): string =>
  `${places.of(asked.run_id, asked.question)}.${signatures.sign(purpose, textOf(asked, tool, principal))}`;

/** The question of a state; undefined where the state is forged, or of another tool or caller. */
export function askedIn(signatures: Signatures, state: string, tool: string, principal: Principal): Asked | undefined {
  const [, place = '', signature = ''] = /^([\da-f.-]+)\.([\w-]{43})$/.exec(state) ?? [];
  const { run_id, n } = places.in(place) ?? {};
  if (run_id === undefined || n === undefined) return undefined;
  const asked = { run_id, question: `${n}` };
  return signatures.isSigned(purpose, textOf(asked, tool, principal), signature) ? asked : undefined;
}
