import { it } from 'vitest';
import { torment } from './killed-server.ts';

// restart.servers.ts does it with two kills, longer runs and worse lines.
it(
  'a server that is killed in the middle of its streams loses, doubles and changes no event of any client',
  {
    timeout: 60_000,
  },
  (test) =>
    torment({
      test,
      total: 60,
      kills: [20],
      lines: [
        ['a good line', undefined],
        ['a proxy that buffers', { holdBack: 100 }],
      ],
    }),
);
