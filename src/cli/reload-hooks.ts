import type { ResolveHook } from 'node:module';
import type { MessagePort } from 'node:worker_threads';

// Runs in Node's module loader thread; see ModuleVersions. Node caches a module under its URL for the life of the process,
// so a module is reloaded under a new URL: one with a version, which a module passes on to its imports.

const versionQuery = /[?&]rivulet=(\d+)/;
// Packages are not reloaded: that is slow, and makes a second instance of modules that have to be singletons.
const projectImport = /^(\.{0,2}\/|file:|#)/;

let imports: MessagePort | undefined;

export function initialize(port: MessagePort): void {
  imports = port;
}

export const resolve: ResolveHook = async (specifier, context, next) => {
  const resolved = await next(specifier, context);
  const version = versionQuery.exec(specifier)?.[1] ?? versionQuery.exec(context.parentURL ?? '')?.[1];
  if (version === undefined || !projectImport.test(specifier) || !resolved.url.startsWith('file:')) return resolved;
  const url = new URL(resolved.url);
  url.searchParams.set('rivulet', version);
  imports?.postMessage(url.href);
  return { ...resolved, url: url.href };
};
