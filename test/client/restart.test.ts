import { it } from 'vitest';
import { killMidStream } from './killed-server.ts';

// restart.servers.ts has two kills, longer runs and proxies that cut connections.
it('clients of a server that is killed mid-stream get every event once and unchanged', (test) =>
  killMidStream({
    test,
    total: 60,
    kills: [20],
    paths: [
      ['no proxy', undefined],
      ['a proxy that buffers', { holdBack: 100 }],
    ],
  }));
