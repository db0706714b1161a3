import type { ResolveHook } from 'node:module';
import type { MessagePort } from 'node:worker_threads';

// Node caches a module under its URL for the life of the process, so a module is reloaded under a new URL: one with a
// version, which a module passes on to its imports. See ModuleVersions. The hooks below run in Node's module loader thread,
// in a Node that has no `registerHooks`.

const versionQuery = /[?&]rivulet=(\d+)/;
// Packages are not reloaded: that is slow, and makes a second instance of modules that have to be singletons.
const projectImport = /^(\.{0,2}\/|file:|#)/;

/** The URL of an import with its version; undefined where it has none. `resolved` is the URL without it. */
export function versioned(specifier: string, parent: string | undefined, resolved: string): string | undefined {
  const version = versionQuery.exec(specifier)?.[1] ?? versionQuery.exec(parent ?? '')?.[1];
  if (version === undefined || !projectImport.test(specifier) || !resolved.startsWith('file:')) return undefined;
  const url = new URL(resolved);
  url.searchParams.set('rivulet', version);
  return url.href;
}

let imports: MessagePort | undefined;

export function initialize(port: MessagePort): void {
  imports = port;
}

export const resolve: ResolveHook = async (specifier, context, next) => {
  const resolved = await next(specifier, context);
  const url = versioned(specifier, context.parentURL, resolved.url);
  if (url === undefined) return resolved;
  imports?.postMessage(url);
  return { ...resolved, url };
};
