import { describeCuts } from './a2a-cuts.ts';

// a2a-cuts.servers.ts has the plans between these.
describeCuts([0, 3, 7]);
