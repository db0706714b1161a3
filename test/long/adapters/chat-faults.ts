import type { MessagePart } from 'rivulet';
import type { Adapter, PaidChat } from './paid-chat.ts';
import type { PayerFolder } from './payer-node.ts';
import type { StrictModel } from './strict-model.ts';
import { textIn } from './told.ts';

/** Adapters that run a tool again which was cut off; the others tell people and the model that the outcome is unknown. */
const repeats = (adapter: Adapter): boolean => !['openai-agents', 'ai-sdk-function'].includes(adapter);

const unknown = 'Whether it took effect is unknown';

/** What is wrong with a chat that is over. `cutOff`: a process may have died while its tools ran. */
export function faultsOf(chat: PaidChat, model: StrictModel, folder: PayerFolder, cutOff: boolean): string[] {
  const faults = [1, 2, 3].flatMap((turn) =>
    (model.refused.get(chat.amountOf(turn)) ?? []).map((why) => `${chat.name}: the model refused ${why}`),
  );
  const check = (holds: boolean, what: () => string): void => {
    if (!holds) faults.push(`${chat.name}: ${what()}`);
  };
  const view = model.told.get(chat.amountOf(3)) ?? [];
  const results = view.filter(({ role }) => role === 'tool').map(({ content }) => textIn(content));
  const said = view.filter(({ role }) => role === 'assistant');
  check(!JSON.stringify(view).includes('May the'), () => `the model was told a question: ${JSON.stringify(view)}`);
  check(results.length === 2, () => `the model of the last turn was told ${results.length} results`);
  check(
    new Set(said.map((one) => JSON.stringify(one))).size === said.length,
    () => 'the model was told an answer twice',
  );
  for (const turn of [1, 2, 3]) {
    const run = chat.runs[turn - 1];
    check(run?.status === 'completed', () => `turn ${turn} is ${run?.status}: ${JSON.stringify(run?.error)}`);
    if (run === undefined) continue;
    for (const [index, { parts }] of run.output.entries())
      check(parts.length > 0, () => `message ${index} of turn ${turn} is empty`);
    if (turn === 3) continue;
    const { questions = [] } = run;
    check(questions.length === 1, () => `turn ${turn} has ${questions.length} questions`);
    const paid = chat.paid(turn);
    const pids = folder.begun(paid ?? chat.amountOf(turn));
    const told = results[turn - 1] ?? '';
    if (paid === undefined) {
      check(pids.length === 0, () => `turn ${turn} paid without an approval`);
      check(/den|not al|not app/i.test(told), () => `the model was not told of the denial, but ${told}`);
      const calls = run.output.flatMap(({ parts }) => parts).flatMap(inputOf);
      check(calls.length > 0, () => `the denied call of turn ${turn} has no input`);
      continue;
    }
    const isUnknown = told.includes(unknown);
    check(pids.length > 0 || (cutOff && isUnknown), () => `turn ${turn} did not pay`);
    // A tool that a crash cut off may run again, in another process.
    const most = cutOff && repeats(chat.adapter) ? new Set(pids).size : 1;
    check(pids.length <= most, () => `turn ${turn} paid ${pids.length} times in the processes ${pids}`);
    check(
      told.includes(`${paid}`) || (cutOff && isUnknown),
      () => `the model was told "${told}" of the payment ${paid}`,
    );
  }
  return faults;
}

function inputOf({ metadata }: MessagePart): object[] {
  return metadata?.kind === 'trajectory' && metadata.tool_input?.amount !== undefined ? [metadata.tool_input] : [];
}
