import { lastValueFrom } from 'rxjs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { mcpTools } from '../../src/remote/mcp.ts';
import { remoteAgent } from '../../src/remote/remote-agent.ts';
import { deferred } from '../support/deferred.ts';
import { endless, endlessLimit, listenAs, mcpServer } from '../support/hostile-servers.ts';

const allowNetworks = ['127.0.0.1'];

describe('a hostile MCP server', () => {
  it.each([
    ['an answer', 'application/json', '"'],
    ['an event', 'text/event-stream', 'data: '],
  ])('that sends %s without an end is left before it fills the memory', async (_, contentType, head) => {
    const { promise: sent, resolve: began } = deferred<number>();
    const url = await mcpServer((_request, response) => began(endless(response, contentType, head)));
    const tools = mcpTools(url, { allowNetworks, timeout: 3_600_000 });
    const failed = lastValueFrom(tools.call('t', {})).catch((error) => error);
    expect(await sent).toBeLessThan(endlessLimit);
    await tools.close();
    expect(await failed).toBeInstanceOf(Error);
  });

  it('that is a child process which writes without an end is left before it fills the memory', async () => {
    const script = `const x = 'x'.repeat(1e6); const push = () => { while (process.stdout.write(x)); };
      process.stdout.on('drain', push); push();`;
    const tools = mcpTools({ command: process.execPath, args: ['-e', script] }, { timeout: 3_600_000 });
    onTestFinished(() => tools.close());
    await expect(tools.tools()).rejects.toThrow();
  });
});

describe('a hostile A2A server', () => {
  it('that answers the request for its card with a stream of blank lines without an end is left', async () => {
    const { promise: sent, resolve: began } = deferred<number>();
    const url = await listenAs((_request, response) => began(endless(response, 'text/event-stream', '', '\n')));
    const failed = remoteAgent(url, { allowNetworks, protocol: 'a2a' }).catch((error) => error);
    expect(await sent).toBeLessThan(endlessLimit);
    expect(await failed).toBeInstanceOf(Error);
  });
});
