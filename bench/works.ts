/** All workloads, in the order of the tables. */
import type { Work } from './work.ts';
import { finishedRuns } from './works/finished-runs.ts';
import { first } from './works/first.ts';
import { growth } from './works/growth.ts';
import { idle } from './works/idle.ts';
import { watched } from './works/readers.ts';
import { replay } from './works/replay.ts';
import { runs } from './works/runs.ts';
import { size } from './works/size.ts';
import { start } from './works/start.ts';
import { streams } from './works/streams.ts';

export const works: readonly Work[] = [
  ...streams,
  ...watched,
  ...first,
  ...runs,
  ...replay,
  ...idle,
  ...finishedRuns,
  ...growth,
  ...start,
  ...size,
];
