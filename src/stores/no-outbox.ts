import type { Delivery, Outbox } from '../core/outbox.ts';

const missing = (): Promise<never> => Promise.reject(new Error('this store has no outbox yet'));

/** For the stores whose outbox is not written yet. */
export class NoOutbox implements Outbox {
  claimDeliveries = async (): Promise<Delivery[]> => [];
  finishDelivery = missing;
  delivery = missing;
  deliveries = missing;
  replayDelivery = missing;
}
