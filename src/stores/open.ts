import type { Store } from '../core/store.ts';

/**
 * Opens the store that a URL names: `memory:`, or `sqlite:PATH` (a relative path is relative to here).
 * Imports only what it opens.
 * @throws Error that says which URLs there are
 */
export async function openStore(url: string): Promise<Store> {
  const [, scheme = '', rest = ''] = /^([a-z]+):(.*)$/s.exec(url) ?? [];
  if (scheme === 'memory') {
    const { MemoryStore } = await import('./memory.ts');
    return new MemoryStore();
  }
  if (scheme === 'sqlite' && rest !== '') {
    const { SqliteStore } = await import('./sqlite.ts');
    // sqlite:///abs/path is what people know from elsewhere.
    return new SqliteStore(rest.replace(/^\/\/(?=\/)/, ''));
  }
  throw new Error(`there is no store "${url}"; use memory: or sqlite:PATH`);
}
