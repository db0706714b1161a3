import OpenAI, { type ClientOptions } from 'openai';
import { type Served, serveAll } from '../../support/serve.ts';
import { all } from './agents.ts';

/** The official client of a server. */
export const clientOf = (url: string, options: ClientOptions = {}): OpenAI =>
  new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', ...options });

/** A listening server with all agents for the tests of a file, and its official client. */
export async function listenForClient(): Promise<{ served: Served; client: OpenAI }> {
  const served = await serveAll(all, { docs: false, playground: false });
  return { served, client: clientOf(served.url) };
}
