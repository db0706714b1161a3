import { type Agent, createServer } from 'rivulet';
import { createServer as createVite } from 'vite';

/** The address of the pages of examples/ui, and what stops them. */
export interface ExamplePages {
  readonly base: string;
  close(): Promise<void>;
}

/** Serves the pages of examples/ui with Vite, in front of a server of agents. */
export async function openPages(agents: Agent[]): Promise<ExamplePages> {
  const app = await createServer({ agents, limits: { shutdownGrace: 0 } });
  process.env.RIVULET_URL = await app.listen({ host: '127.0.0.1', port: 0 });
  const vite = await createVite({
    configFile: 'examples/ui/vite.config.ts',
    logLevel: 'error',
    server: { host: '127.0.0.1', port: 0 },
  });
  delete process.env.RIVULET_URL;
  await vite.listen();
  return {
    base: vite.resolvedUrls?.local[0] ?? '',
    async close() {
      await vite.close();
      await app.close();
    },
  };
}
