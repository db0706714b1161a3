import { type AgentOutput, defineAgent } from 'rivulet';
import { concat, of } from 'rxjs';

/** Calls the agents of both other servers. They are cancelled with it. */
export default defineAgent(
  {
    name: 'planner',
    description: 'Plans a trip, with agents of two other servers.',
    metadata: {
      examples: ['Oslo'],
      dependencies: [
        { type: 'agent', name: 'weather' },
        { type: 'agent', name: 'expert' },
      ],
    },
  },
  (input, context) =>
    concat(
      of<AgentOutput>('The weather: '),
      context.call('weather', input),
      of<AgentOutput>('\nTo pack: '),
      context.call('expert', input),
    ),
  { durable: true },
);
