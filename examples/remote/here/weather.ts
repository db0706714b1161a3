import { remoteAgent } from 'rivulet/remote';

/** The agent of the other server, under its own name. With a manifest, this server starts without the other one. */
export default await remoteAgent(process.env.WEATHER_URL ?? 'http://127.0.0.1:8001/agents/weather', {
  manifest: { name: 'weather', description: 'Tells the weather of a place.' },
  allowNetworks: ['127.0.0.1'],
  durable: true,
});
