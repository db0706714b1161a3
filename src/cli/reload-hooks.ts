import type { ResolveHook } from 'node:module';
import type { MessagePort } from 'node:worker_threads';

// Runs in Node's thread for loading modules; see ModuleVersions. A module is cached under its URL for as long as the
// process lives, so another URL is what loads it anew: the mark of a version, passed on from a module to what it imports.

const mark = /[?&]rivulet=(\d+)/;
// Packages stay as they are: loading them again would cost much, and make two of what there has to be one of.
const ofProject = /^(\.{0,2}\/|file:|#)/;

let loaded: MessagePort | undefined;

export function initialize(port: MessagePort): void {
  loaded = port;
}

export const resolve: ResolveHook = async (specifier, context, next) => {
  const resolved = await next(specifier, context);
  const version = mark.exec(specifier)?.[1] ?? mark.exec(context.parentURL ?? '')?.[1];
  if (version === undefined || !ofProject.test(specifier) || !resolved.url.startsWith('file:')) return resolved;
  const url = new URL(resolved.url);
  url.searchParams.set('rivulet', version);
  loaded?.postMessage(url.href);
  return { ...resolved, url: url.href };
};
