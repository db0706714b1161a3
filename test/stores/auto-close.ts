import { afterEach } from 'vitest';
import type { Store } from '../../src/core/ports/store.ts';
import { openStore } from '../../src/stores/open.ts';
import { dividing } from './dividing.ts';

interface Closable {
  close(): Promise<unknown>;
}

/** Opens stores for the tests of a block, and closes them after each test in reverse order. */
export function closedAfterEach(): {
  /** Opens the store at a URL, with more parameters. */
  open(url: string, ...parameters: readonly string[]): Promise<Store>;
  closeAfter<One extends Closable>(one: One): One;
} {
  const opened: Closable[] = [];
  afterEach(async () => {
    for (const one of opened.splice(0).reverse()) await one.close();
  });
  const closeAfter = <One extends Closable>(one: One): One => {
    opened.push(one);
    return one;
  };
  return {
    open: async (url, ...parameters) => closeAfter(dividing(await openStore([url, ...parameters].join('&')))),
    closeAfter,
  };
}
