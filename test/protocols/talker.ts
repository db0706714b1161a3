import { concat, from, map, of } from 'rxjs';
import { type Agent, type AgentOutput, trajectory } from '../../src/index.ts';
import { agent } from '../support/agents.ts';

/** Says something, works, emits the output of the test, asks, and goes on: a stream that may be cut anywhere. */
export const talkerWith = (...output: AgentOutput[]): Agent =>
  agent('talker', (_, context) =>
    concat(
      of('One ', '“two” ', 'three.'),
      of(trajectory({ tool_name: 'search', tool_input: { q: 'x' }, tool_output: { hits: 2 } })),
      from(output),
      of('Shall ', 'I?'),
      context.await('Well?').pipe(map(({ message }) => `You said ${message.parts[0]?.content}.`)),
      of(' And ', 'so ', 'on.'),
    ),
  );
