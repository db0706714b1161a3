import type { Principal } from '../../core/principal.ts';
import type { Signatures } from '../../http/auth/signatures.ts';

// What a modern client gives back with the reply to a question: the run and the question, signed for the tool and the
// caller, so that no other caller answers it.

export interface Asked {
  readonly run_id: string;
  /** The id of the question within its run. */
  readonly question: string;
}

const purpose = 'mcp question';
const form = /^([\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12})\.(\d{1,15})\.([\w-]{43})$/;

const textOf = ({ run_id, question }: Asked, tool: string, { id, kind }: Principal): string =>
  JSON.stringify([run_id, question, tool, kind, id]);

export const requestState = (signatures: Signatures, asked: Asked, tool: string, principal: Principal): string =>
  `${asked.run_id}.${asked.question}.${signatures.sign(purpose, textOf(asked, tool, principal))}`;

/** The question of a state; undefined where the state is forged, or of another tool or caller. */
export function askedIn(signatures: Signatures, state: string, tool: string, principal: Principal): Asked | undefined {
  const [, run_id = '', question = '', signature = ''] = form.exec(state) ?? [];
  const asked = { run_id, question };
  return signatures.isSigned(purpose, textOf(asked, tool, principal), signature) ? asked : undefined;
}
