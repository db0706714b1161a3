/** A process that takes runs and never ends them: `hold-runs.ts URL LEASE`. Prints their ids. */
import { openDispatcher } from '../../src/dispatchers/open.ts';

const [url = '', lease = ''] = process.argv.slice(2);
const dispatcher = await openDispatcher(url, { slots: 4, lease: Number(lease), onError: console.error });
await dispatcher.start(
  (run_id) => {
    console.log(run_id);
    return new Promise(() => {});
  },
  async () => {},
);
