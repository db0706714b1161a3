import type { Redis } from 'ioredis';

// What is kept under which name; all names begin with the store's prefix. It is a hash tag, so that a cluster
// keeps all of it in one slot, where a script may touch it.
//
//   version            string  of this layout
//   run:ID             hash    row (JSON), last, epoch, status, agent, session, input (JSON)
//   log:ID             stream  an entry is a batch: its id is that of its last event, its field `b` the lines
//   journal:ID         list    lines, as they were written
//   made:ID            set     the resources that go when the run goes
//   runs, agent:NAME, status:STATUS, agent-status:NAME:STATUS, of:SESSION, unfinished, unfinished:SESSION
//                      zset    ids of runs, all with the score 0: by name, which is by time
//   due, ended         zset    ids of runs by that time, in milliseconds
//   session:ID         hash    state, urls (how many were ever added)
//   history:ID         zset    URLs by the order in which they came
//   kept:ID            set     the session's resources
//   own:ID             set     those of them that belong to no run: its states
//   idle               zset    sessions that have lost a run, by the time at which that run ended
//   removed            set     tokens of sessions that were removed and are not cleared yet; of each of them:
//   left-runs:TOKEN, left-kept:TOKEN    what was of:SESSION and kept:SESSION
//   resource:ID        string  JSON
//   keys               hash    JSON of each Idempotency-Key
//   keys:age           zset    the same by time
//   figures:AGENT      hash    completed, failed, tokens, seconds
//   commit:WRITER      string  the number of an open store's last commit, and a letter for each of its writes; for a day
//
// What was taken is published on the channel `moved`, a line for each write: epoch, last, 1 where the run
// is over, run_id.

/** Of what is described above. */
const layout = 1;

/** Makes sure that what is kept is of this layout. @throws Error where a newer Rivulet has written it */
export async function checkLayout(redis: Redis, prefix: string): Promise<void> {
  const name = `${prefix}version`;
  // Written only where there is none: a user may lack the right to write, or Redis the memory.
  const found = (await redis.get(name)) ?? (await redis.set(name, layout, 'NX', 'GET')) ?? layout;
  if (Number(found) !== layout) {
    throw new Error(`the prefix ${prefix} was written by a newer Rivulet (layout ${found}, this one knows ${layout})`);
  }
}

/** What in the settings of Redis may lose commits that were answered. */
export async function risks(redis: Redis): Promise<string[]> {
  const info = await redis.info().catch(() => '');
  const found: string[] = [];
  if (/^aof_enabled:0/m.test(info)) {
    found.push('Redis keeps no log of its writes: a crash of it loses what was answered; set "appendonly yes"');
  }
  const policy = /^maxmemory_policy:(\S+)/m.exec(info)?.[1] ?? 'noeviction';
  if (policy !== 'noeviction') {
    found.push(`Redis removes runs when its memory is full (maxmemory-policy ${policy}); set "noeviction"`);
  }
  return found;
}
