import { describeCuts } from './a2a-cuts.ts';

describeCuts([0, 1, 2, 3, 4, 5, 6, 7]);
