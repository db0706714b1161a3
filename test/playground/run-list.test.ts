import { defer, Subject, throwError } from 'rxjs';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { Client, ClientError, type WatchRunsOptions } from '../../src/client/client.ts';
import { type RunFilter, RunList, watchRunChanges } from '../../src/playground/runs/run-list.ts';
import type { RunSummary } from '../../src/schema/run.ts';

const row = (id: number, status: RunSummary['status'] = 'completed', agent_name = 'echo'): RunSummary => ({
  run_id: `00000000-0000-7000-8000-${String(id).padStart(12, '0')}`,
  agent_name,
  status,
  output: [],
  title: 'Hello',
  created_at: '2026-01-01T00:00:00Z',
});
const idsOf = (list: RunList) => list.rows.value?.map(({ run_id }) => Number(run_id.slice(-12)));

/** A list over a server that has these pages, each under the cursor that leads to it. */
async function listOver(pages: Record<string, { runs: RunSummary[]; next_cursor?: string }>, filter: RunFilter = {}) {
  const changes = new Subject<RunSummary | undefined>();
  const asked: string[] = [];
  const answer = async (url: URL | RequestInfo): Promise<Response> => {
    const { searchParams } = new URL(String(url));
    asked.push(searchParams.toString());
    return Response.json(pages[searchParams.get('cursor') ?? 'first']);
  };
  const list = new RunList(new Client({ url: 'http://h', fetch: answer }), changes, filter);
  const subscription = list.start();
  onTestFinished(() => subscription.unsubscribe());
  const loaded = new Promise<void>((resolve) => list.rows.subscribe((rows) => rows !== undefined && resolve()));
  await loaded;
  return { list, changes, asked, pages };
}

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

describe('a list of runs', () => {
  it('adds new runs in front, and changes known ones in their place', async () => {
    const { list, changes } = await listOver({ first: { runs: [row(2), row(1, 'in-progress')] } });
    changes.next(row(3, 'created'));
    changes.next(row(1, 'failed'));
    expect(idsOf(list)).toEqual([3, 2, 1]);
    expect(list.rows.value?.at(-1)?.status).toBe('failed');
  });

  it('drops a run that no longer matches its filter, and ignores runs of others', async () => {
    const { list, changes, asked } = await listOver(
      { first: { runs: [row(2, 'awaiting'), row(1, 'awaiting')] } },
      { status: 'awaiting', agent_name: 'echo' },
    );
    expect(asked).toEqual(['status=awaiting&agent_name=echo&limit=50']);
    changes.next(row(2, 'in-progress'));
    changes.next(row(3, 'awaiting', 'other'));
    changes.next(row(4, 'awaiting'));
    expect(idsOf(list)).toEqual([4, 1]);
  });

  it('loads older pages, which stay when the newest one is loaded again', async () => {
    const { list, changes, pages } = await listOver({
      first: { runs: [row(5), row(4)], next_cursor: 'b' },
      b: { runs: [row(3), row(2)], next_cursor: 'c' },
      c: { runs: [row(1)] },
    });
    // It is on a page that is not loaded.
    changes.next(row(1, 'failed'));
    expect(idsOf(list)).toEqual([5, 4]);
    await list.loadOlder();
    expect([idsOf(list), list.older.value]).toEqual([[5, 4, 3, 2], 'c']);
    pages.first = { runs: [row(6), row(5)], next_cursor: 'b' };
    const renewed = new Promise<void>((resolve) =>
      list.rows.subscribe((rows) => rows?.[0]?.run_id === row(6).run_id && resolve()),
    );
    changes.next(undefined);
    await renewed;
    expect(idsOf(list)).toEqual([6, 5, 4, 3, 2]);
    await list.loadOlder();
    expect([idsOf(list), list.older.value]).toEqual([[6, 5, 4, 3, 2, 1], undefined]);
  });

  it('keeps a change that comes while a page is loaded', async () => {
    const { list, changes } = await listOver({ first: { runs: [row(1, 'in-progress')] } });
    const renewed = new Promise<void>((resolve) => {
      let times = 0;
      list.rows.subscribe(() => {
        times += 1;
        // The first value, the change, the page, and the change again.
        if (times === 4) resolve();
      });
    });
    changes.next(undefined);
    changes.next(row(1, 'completed'));
    await renewed;
    expect(list.rows.value?.[0]?.status).toBe('completed');
  });

  it('is empty where the server refuses its filter', async () => {
    const refuse = async (): Promise<Response> =>
      Response.json({ code: 'not_found', message: 'The server hosts no agent gone.' }, { status: 404 });
    const list = new RunList(new Client({ url: 'http://h', fetch: refuse }), new Subject(), { agent_name: 'gone' });
    const shown = new Promise<void>((resolve) => list.rows.subscribe((rows) => rows !== undefined && resolve()));
    const subscription = list.start();
    onTestFinished(() => subscription.unsubscribe());
    await shown;
    expect(list.rows.value).toEqual([]);
  });

  it('asks a busy server again no sooner than it says', async () => {
    vi.useFakeTimers();
    let asked = 0;
    const busy = async (): Promise<Response> => {
      asked += 1;
      const body = { code: 'server_error', message: 'The server is busy.' };
      return Response.json(body, { status: 503, headers: { 'Retry-After': '20' } });
    };
    const list = new RunList(new Client({ url: 'http://h', fetch: busy }), new Subject(), {});
    const subscription = list.start();
    onTestFinished(() => subscription.unsubscribe());
    await vi.advanceTimersByTimeAsync(19_999);
    expect(asked).toBe(1);
    await vi.advanceTimersByTimeAsync(10_002);
    expect(asked).toBe(2);
  });
});

describe('the feed of runs', () => {
  it('is opened ever less often where it begins and then fails each time', async () => {
    vi.useFakeTimers();
    vi.stubGlobal('document', Object.assign(new EventTarget(), { visibilityState: 'visible' }));
    let opened = 0;
    const watchRuns = (_: object | undefined, { onReady }: WatchRunsOptions = {}) =>
      defer(() => {
        opened += 1;
        onReady?.();
        return throwError(() => new ClientError({ code: 'not_understood', status: 200, message: 'A proxy answered.' }));
      });
    const subscription = watchRunChanges({ watchRuns }).subscribe();
    onTestFinished(() => subscription.unsubscribe());
    await vi.advanceTimersByTimeAsync(60_000);
    // With the shortest pause each time, it would be 40 and more.
    expect(opened).toBeGreaterThan(5);
    expect(opened).toBeLessThan(20);
  });
});
