import { type FSWatcher, readdirSync, watch } from 'node:fs';
import nodeModule from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MessageChannel, receiveMessageOnPort } from 'node:worker_threads';
import {
  concatMap,
  debounceTime,
  delay,
  firstValueFrom,
  map,
  merge,
  type Observable,
  Subject,
  type Subscription,
} from 'rxjs';
import { messageOf } from '../../core/json.ts';
import { type Hosted, Registry } from '../../engine/agents/registry.ts';
import { terminal } from '../terminal/terminal.ts';
import { allowTypeScript } from './import-module.ts';
import { agentFiles, ignoredName, loadAgent, sourceFile } from './load-agents.ts';
import { versioned } from './reload-hooks.ts';

/** Milliseconds without a change before the agents are reloaded: editors and git write in bursts. */
const debounce = 50;
/** Milliseconds after a change before a file that still loads is left: its `await` may never settle. */
const leaveAfter = 1_000;

/** A file that agents read when they load, such as one with variables, and how it is read again before they do. */
interface Reread {
  readonly path: string;
  /** @throws Error with one line that names the file */
  read(): void;
}

/** The agents of some folders. They are reloaded when one of their files, or a file that it imports, changes. */
export class WatchedAgents {
  readonly registry = new Registry([]);
  readonly #folders: readonly string[];
  readonly #reread: Reread | undefined;
  readonly #modules: ModuleVersions;
  readonly #changes = new Subject<string>();
  readonly #reloading: Subscription;
  /** By file, as it last loaded successfully. */
  #hosted = new Map<string, Hosted>();
  /** The first load: two at a time would overwrite each other's agents. */
  #opened = Promise.resolve();
  #imported = new Set<string>();
  #watchers = new Map<string, FSWatcher>();
  #version = 0;

  private constructor(folders: readonly string[], reread: Reread | undefined) {
    this.#folders = folders.map((folder) => resolve(folder));
    this.#reread = reread;
    this.#modules = new ModuleVersions();
    this.#reloading = this.#reloads().subscribe();
  }

  /** @throws Error if a folder cannot be read, or two agents have the same name; a file that does not load is reported */
  static async open(folders: readonly string[], reread?: Reread): Promise<WatchedAgents> {
    await allowTypeScript();
    const agents = new WatchedAgents(folders, reread);
    agents.#opened = agents.#load();
    await agents.#opened;
    return agents;
  }

  close(): void {
    this.#reloading.unsubscribe();
    for (const watcher of this.#watchers.values()) watcher.close();
    this.#modules.close();
  }

  #reloads(): Observable<void> {
    return this.#changes.pipe(
      debounceTime(debounce),
      concatMap(async (changed) => {
        await this.#opened;
        const before = this.registry.list();
        try {
          await this.#load();
        } catch (error) {
          return report(`${messageOf(error)}; the agents were not changed`);
        }
        const after = this.registry.list();
        const names = after.map(({ manifest }) => manifest.name);
        const removed = before.map(({ manifest }) => manifest.name).filter((name) => !names.includes(name));
        const changes = [
          `${relative('.', changed)} has changed; now hosting ${names.join(', ') || 'no agent'}`,
          ...removed.map((name) => `${name} was removed`),
        ];
        terminal.print(changes.join('; '));
      }),
    );
  }

  // Reloads all agents: only Node knows which agents import a changed file, and loading one takes milliseconds.
  async #load(): Promise<void> {
    this.#version += 1;
    const files = (await Promise.all(this.#folders.map(agentFiles))).flat();
    // Watch before reading, so that no change is missed. Watch anew, because a folder that git has removed and restored
    // is not the one that was watched.
    const previous = this.#watchers;
    this.#watchers = new Map();
    const others = [...this.#imported, ...(this.#reread ? [this.#reread.path] : [])];
    this.#watch([...this.#folders.flatMap(withSubfolders), ...others.map(dirname)]);
    for (const watcher of previous.values()) watcher.close();
    this.#reread?.read();
    const loaded = new Map<string, Hosted>();
    let broken = 0;
    for (const file of files) {
      const previous = this.#hosted.get(file);
      const hosted = await this.#loadFile(file).catch((error: Error) => {
        broken += 1;
        report(`${error.message}; ${previous ? 'its previous version stays' : 'the file is skipped'}`);
        return previous;
      });
      if (hosted !== undefined) loaded.set(file, hosted);
    }
    this.#imported = this.#modules.imported();
    this.#watch([...this.#imported].map(dirname));
    this.registry.replace(loaded.values(), broken);
    this.#hosted = loaded;
  }

  /** The agent of a file. A module whose `await` never settles is left when a file changes, which may mend it. */
  #loadFile(file: string): Promise<Hosted> {
    const overtaken = this.#changes.pipe(
      delay(leaveAfter),
      map(() => {
        throw new Error(`${relative('.', file)}: had not loaded when a file changed`);
      }),
    );
    return firstValueFrom(merge(loadAgent(file, this.#version), overtaken));
  }

  #watch(folders: readonly string[]): void {
    for (const folder of folders) {
      if (this.#watchers.has(folder)) continue;
      const watcher = watch(folder, (_, name) => {
        const path = name === null ? folder : join(folder, name);
        const isRead = this.#imported.has(path) || path === this.#reread?.path;
        if (name === null || isRead || this.#mayContainAgent(folder, name)) this.#changes.next(path);
      });
      // The folder was removed, which is a change as well.
      watcher.on('error', () => this.#changes.next(folder));
      this.#watchers.set(folder, watcher);
    }
  }

  /** Whether a file or folder of that name can be an agent or a part of one. */
  #mayContainAgent(folder: string, name: string): boolean {
    const isInside = this.#folders.some((root) => folder === root || dirname(folder) === root);
    return isInside && !ignoredName.test(name) && (sourceFile.test(name) || !name.includes('.'));
  }
}

const withSubfolders = (folder: string): string[] => [
  folder,
  ...readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !ignoredName.test(entry.name) && entry.name !== 'node_modules')
    .map(({ name }) => join(folder, name)),
];

const report = (message: string): void => terminal.error(`rivulet: ${message}`);

/**
 * Makes `import('file:…?rivulet=2')` reload that module and all project files that it imports; packages stay cached.
 * Old versions stay in memory, because Node cannot unload a module.
 */
class ModuleVersions {
  #imported = new Set<string>();
  readonly #fetch: () => void;
  readonly close: () => void;

  /** Has to be created after tsx is registered, so that tsx sees the URLs with versions. */
  constructor() {
    const hooks = nodeModule.registerHooks?.({
      resolve: (specifier, context, next) => {
        const resolved = next(specifier, context);
        const url = versioned(specifier, context.parentURL, resolved.url);
        if (url === undefined) return resolved;
        this.#add(url);
        return { ...resolved, url };
      },
    });
    if (hooks !== undefined) {
      this.#fetch = () => {};
      this.close = () => hooks.deregister();
      return;
    }
    // Node 20 has hooks in a thread only; Node 26 warns of them.
    const { port1, port2 } = new MessageChannel();
    nodeModule.register('./reload-hooks.js', { parentURL: import.meta.url, data: port2, transferList: [port2] });
    this.#fetch = () => {
      for (let got = receiveMessageOnPort(port1); got !== undefined; got = receiveMessageOnPort(port1))
        this.#add(got.message);
    };
    this.close = () => port1.close();
  }

  /** The files that were imported since the last call. */
  imported(): Set<string> {
    this.#fetch();
    const files = this.#imported;
    this.#imported = new Set();
    return files;
  }

  #add(url: string): void {
    this.#imported.add(fileURLToPath(url));
  }
}
