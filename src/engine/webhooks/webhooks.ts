import { fail } from '../../core/errors.ts';
import type { Delivery, DeliveryFilter, PendingDeliveries } from '../../core/ports/outbox.ts';
import type { Outcome, Write } from '../../core/ports/run-store.ts';
import type { Store } from '../../core/ports/store.ts';
import { encodeTargets, type PushForms, type PushTarget, targetsOf } from '../../core/push-targets.ts';
import { changeColumn } from '../store/change-column.ts';
import { type IsVisible, type RunTest, visiblePage } from '../store/visible-runs.ts';
import { Deliverer, type DelivererOptions, type SendWebhook } from './deliverer.ts';
import { isReported } from './deliveries.ts';

/** How an engine sends webhooks. */
export interface WebhookOptions {
  readonly send: SendWebhook;
  /** What is wrong with the URL of a webhook; undefined if nothing is. */
  readonly problemOf: (url: string) => string | undefined;
  /** How other protocols write to their targets. */
  readonly forms?: PushForms;
}

/** A page of webhooks. */
export interface DeliveryPage {
  readonly deliveries: Delivery[];
  /** Where the next page begins; absent on the last one. */
  readonly next?: string;
}

/** Webhooks of a run that one call lists: each has six changes of status, and an await each two more. */
const maxOfRun = 1_000;
/** Pending webhooks that are counted: some ten milliseconds in PostgreSQL, less in the other stores. */
const maxCounted = 10_000;

/** The webhooks of an engine: its outbox, and their delivery where that is configured. */
export class Webhooks {
  readonly #store: Store;
  readonly #options: WebhookOptions | undefined;
  readonly #deliverer: Deliverer | undefined;

  constructor(
    store: Store,
    options: WebhookOptions | undefined,
    more: Omit<DelivererOptions, 'store' | 'send' | 'forms'>,
  ) {
    this.#store = store;
    this.#options = options;
    this.#deliverer = options && new Deliverer({ ...more, store, send: options.send, forms: options.forms ?? {} });
  }

  start(): void {
    this.#deliverer?.start();
  }

  async stop(): Promise<void> {
    await this.#deliverer?.stop();
  }

  /** Writes of this node were committed: what they report is sent at once. */
  onCommitted(writes: readonly Write[], outcomes: readonly Outcome[]): void {
    if (writes.some((write, index) => isReported(write) && outcomes[index] === 'taken')) this.#deliverer?.wake();
  }

  /** Whether this server sends any. */
  get areOn(): boolean {
    return this.#options !== undefined;
  }

  /** @throws RivuletError `webhooks_off`, `validation_failed` */
  check(url: string, field: string): void {
    if (this.#options === undefined) throw fail('webhooks_off');
    const problem = this.#options.problemOf(url);
    if (problem !== undefined) throw fail('validation_failed', field, problem);
  }

  /**
   * The targets of a run that were added in a form; none of an unknown run. They have their secrets where the reader is the
   * owner of the run, and not for `undefined`.
   */
  async targets(run_id: string, form: string, reader: string | null | undefined): Promise<PushTarget[]> {
    const row = await this.#store.run(run_id);
    const found = row === undefined ? [] : targetsOf(row).filter((target) => target.form === form);
    return row?.owner === reader ? found : found.map(withoutSecrets);
  }

  /** @throws RivuletError `webhooks_off`, `validation_failed`, and as `#change` */
  async putTarget(run_id: string, target: PushTarget): Promise<void> {
    this.check(target.url, 'url');
    await this.#change(run_id, (before) => [...before.filter(({ id }) => id !== target.id), target]);
  }

  /** @throws as `#change` */
  removeTarget(run_id: string, id: string): Promise<void> {
    return this.#change(run_id, (before) => before.filter((target) => target.id !== id));
  }

  /**
   * The node that executes the run learns of the change with its next change of status.
   * @throws RivuletError `run_unknown`, `conflict`, `store_unavailable`
   */
  async #change(run_id: string, change: (targets: readonly PushTarget[]) => readonly PushTarget[]): Promise<void> {
    const isKnown = await changeColumn(this.#store, run_id, 'targets', (row) => encodeTargets(change(targetsOf(row))));
    if (!isKnown) throw fail('run_unknown', run_id);
  }

  /** Deliveries of the agents that pass, newest first; only older ones than the delivery `before`, if it is given. */
  async page(
    filter: DeliveryFilter,
    before: string | undefined,
    limit: number,
    isVisible?: IsVisible,
  ): Promise<DeliveryPage> {
    const read = (from: string | undefined, count: number) => this.#store.outbox.deliveries(filter, from, count);
    const { items, readTo } =
      isVisible === undefined
        ? { items: await read(before, limit + 1) }
        : await visiblePage<Delivery>(
            (after, count) => read(after?.delivery_id ?? before, count),
            this.#passes(isVisible),
            limit + 1,
          );
    const last = items.length > limit ? items[limit - 1] : readTo;
    return { deliveries: items.slice(0, limit), ...(last !== undefined && { next: last.delivery_id }) };
  }

  /** The deliveries of a run, newest first. */
  ofRun(run_id: string): Promise<Delivery[]> {
    return this.#store.outbox.deliveries({ run_id }, undefined, maxOfRun);
  }

  /** Reads the run of each delivery, and once for several that follow each other. */
  #passes(isVisible: IsVisible): (delivery: Delivery) => Promise<boolean> {
    let known: { readonly run_id: string; readonly passes: boolean } | undefined;
    return async ({ run_id }) => {
      if (known?.run_id !== run_id) {
        const row = await this.#store.run(run_id);
        known = { run_id, passes: row !== undefined && isVisible(row.agent_name) };
      }
      return known.passes;
    };
  }

  /** The webhooks that wait for an attempt, of all nodes; counted up to ten thousand. */
  pending(): Promise<PendingDeliveries> {
    return this.#store.outbox.pendingDeliveries(maxCounted);
  }

  /** @throws RivuletError `delivery_unknown`, also where its run does not pass */
  async find(delivery_id: string, isAllowed: RunTest): Promise<Delivery> {
    const found = await this.#store.outbox.delivery(delivery_id);
    const row = found && (await this.#store.run(found.run_id));
    if (found === undefined || row === undefined || !isAllowed(row)) throw fail('delivery_unknown', delivery_id);
    return found;
  }

  /** Sends a webhook again, with all its attempts. @throws RivuletError `delivery_pending` */
  async replay({ delivery_id }: Delivery): Promise<Delivery> {
    if (!(await this.#store.outbox.replayDelivery(delivery_id, new Date().toISOString()))) {
      throw fail('delivery_pending', delivery_id);
    }
    this.#deliverer?.wake();
    return this.find(delivery_id, () => true);
  }
}

/** The scheme stays: it tells how the receiver knows the server. */
const withoutSecrets = ({ token: _, authentication, ...target }: PushTarget): PushTarget => ({
  ...target,
  ...(authentication !== undefined && { authentication: { scheme: authentication.scheme } }),
});
