import { remoteAgent } from 'rivulet/remote';

/** An A2A agent, found by its card. */
export default await remoteAgent(process.env.EXPERT_URL ?? 'http://127.0.0.1:8002/', {
  manifest: { name: 'expert', description: 'Says what to pack.' },
  allowNetworks: ['127.0.0.1'],
  durable: true,
});
