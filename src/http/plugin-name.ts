const displayName = Symbol.for('fastify.display-name');

/**
 * Gives a plugin its name. Fastify looks for the plugin among all CommonJS modules of the process otherwise, twice for
 * each server that registers it.
 */
export const named = <Plugin extends object>(plugin: Plugin, name: string): Plugin =>
  Object.assign(plugin, { [displayName]: name });
