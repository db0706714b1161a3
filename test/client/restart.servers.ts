import { it } from 'vitest';
import { torment } from './killed-server.ts';

it(
  'a server that is killed twice in the middle of its streams loses, doubles and changes no event of any client',
  {
    timeout: 120_000,
  },
  (test) =>
    torment({
      test,
      total: 400,
      kills: [50, 170],
      lines: [
        ['a good line', undefined],
        ['a proxy that cuts connections all the time', { cutAfter: 150 }],
        ['a proxy that buffers', { holdBack: 100 }],
        ['a proxy that does both', { cutAfter: 250, holdBack: 60 }],
      ],
    }),
);
