import { it } from 'vitest';
import { killMidStream } from './killed-server.ts';

it(
  'clients of a server that is killed twice mid-stream get every event once and unchanged',
  {
    timeout: 120_000,
  },
  (test) =>
    killMidStream({
      test,
      total: 400,
      kills: [50, 170],
      paths: [
        ['no proxy', undefined],
        ['a proxy that keeps cutting connections', { cutAfter: 150 }],
        ['a proxy that buffers', { holdBack: 100 }],
        ['a proxy that does both', { cutAfter: 250, holdBack: 60 }],
      ],
    }),
);
