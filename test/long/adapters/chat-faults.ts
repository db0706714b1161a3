import type { MessagePart } from 'rivulet';
import type { Adapter, PaidChat } from './paid-chat.ts';
import type { PayerFolder } from './payer-node.ts';
import { type StrictModel, tokensPerCall } from './strict-model.ts';
import { type Told, textIn } from './told.ts';

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
  const said = view.filter(({ role }) => role === 'assistant');
  check(!JSON.stringify(view).includes('May the'), () => `the model was told a question: ${JSON.stringify(view)}`);
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
    const counted = run.usage?.input_tokens ?? 0;
    check(counted >= (turn === 3 ? 1 : 2) * tokensPerCall, () => `turn ${turn} counts ${counted} input tokens`);
    if (turn === 3) continue;
    const { questions = [] } = run;
    check(questions.length === 1, () => `turn ${turn} has ${questions.length} questions`);
    const paid = chat.paid(turn);
    const pids = folder.begun(paid ?? chat.amountOf(turn));
    const result = lastResult(view, `Pay ${chat.amountOf(turn)}`);
    check(result !== '', () => `the model of the last turn was told no result of turn ${turn}`);
    if (paid === undefined) {
      check(pids.length === 0, () => `turn ${turn} paid without an approval`);
      check(/den|not al|not app/i.test(result), () => `the model was not told of the denial, but ${result}`);
      const calls = run.output.flatMap(({ parts }) => parts).flatMap(inputOf);
      check(calls.length > 0, () => `the denied call of turn ${turn} has no input`);
      continue;
    }
    const isUnknown = result.includes(unknown);
    check(pids.length > 0 || (cutOff && isUnknown), () => `turn ${turn} did not pay`);
    // A tool that a crash cut off may run again, in another process.
    const most = cutOff && repeats(chat.adapter) ? new Set(pids).size : 1;
    check(pids.length <= most, () => `turn ${turn} paid ${pids.length} times in the processes ${pids}`);
    check(
      result.includes(`${paid}`) || (cutOff && isUnknown),
      () => `the model was told "${result}" of the payment ${paid}`,
    );
  }
  return faults;
}

/** The result of the last call in a turn: a call that a crash cut off before it was executed comes before. */
function lastResult(view: readonly Told[], asked: string): string {
  const turn = view.slice(view.findIndex(({ role, content }) => role === 'user' && textIn(content) === asked) + 1);
  const end = turn.findIndex(({ role, content }) => role === 'user' && /^(Pay|Hello) /.test(textIn(content)));
  return textIn(turn.slice(0, end).findLast(({ role }) => role === 'tool')?.content);
}

function inputOf({ metadata }: MessagePart): object[] {
  return metadata?.kind === 'trajectory' && metadata.tool_input?.amount !== undefined ? [metadata.tool_input] : [];
}
