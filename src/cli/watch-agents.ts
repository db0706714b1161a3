import { type FSWatcher, readdirSync, watch } from 'node:fs';
import { register } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { concatMap, debounceTime, type Observable, Subject, type Subscription } from 'rxjs';
import { type Hosted, Registry } from '../engine/registry.ts';
import { allowTypeScript } from './import-module.ts';
import { agentFiles, ignoredName, loadAgent, sourceFile } from './load-agents.ts';
import { terminal } from './terminal.ts';

/** Milliseconds without a change before the agents are reloaded: editors and git write in bursts. */
const debounce = 50;

/** The agents of some folders. They are reloaded when one of their files, or a file that it imports, changes. */
export class WatchedAgents {
  readonly registry = new Registry([]);
  readonly #folders: readonly string[];
  readonly #modules: ModuleVersions;
  readonly #changes = new Subject<string>();
  readonly #reloading: Subscription;
  /** By file, as it last loaded successfully. */
  #hosted = new Map<string, Hosted>();
  #imported = new Set<string>();
  #watchers = new Map<string, FSWatcher>();
  #version = 0;

  private constructor(folders: readonly string[]) {
    this.#folders = folders.map((folder) => resolve(folder));
    this.#modules = new ModuleVersions();
    this.#reloading = this.#reloads().subscribe();
  }

  /** @throws Error if a folder cannot be read, or two agents have the same name; a file that does not load is reported */
  static async open(folders: readonly string[]): Promise<WatchedAgents> {
    await allowTypeScript();
    const agents = new WatchedAgents(folders);
    await agents.#load();
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
        const before = this.registry.list();
        try {
          await this.#load();
        } catch (error) {
          return report(`${error instanceof Error ? error.message : String(error)}; the agents were not changed`);
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
    this.#watch([...this.#folders.flatMap(withSubfolders), ...[...this.#imported].map(dirname)]);
    for (const watcher of previous.values()) watcher.close();
    const loaded = new Map<string, Hosted>();
    for (const file of files) {
      const previous = this.#hosted.get(file);
      const hosted = await loadAgent(file, this.#version).catch((error: Error) => {
        report(`${error.message}; ${previous ? 'its previous version stays' : 'the file is skipped'}`);
        return previous;
      });
      if (hosted !== undefined) loaded.set(file, hosted);
    }
    this.#imported = this.#modules.imported();
    this.#watch([...this.#imported].map(dirname));
    this.registry.replace(loaded.values());
    this.#hosted = loaded;
  }

  #watch(folders: readonly string[]): void {
    for (const folder of folders) {
      if (this.#watchers.has(folder)) continue;
      const watcher = watch(folder, (_, name) => {
        const path = name === null ? folder : join(folder, name);
        if (name === null || this.#imported.has(path) || this.#mayContainAgent(folder, name)) this.#changes.next(path);
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
  readonly #port: MessagePort;

  /** Has to be created after tsx is registered, so that tsx sees the URLs with versions. */
  constructor() {
    const { port1, port2 } = new MessageChannel();
    register('./reload-hooks.js', { parentURL: import.meta.url, data: port2, transferList: [port2] });
    this.#port = port1;
  }

  /** The files that were imported since the last call. */
  imported(): Set<string> {
    const files = new Set<string>();
    for (let entry = receiveMessageOnPort(this.#port); entry !== undefined; entry = receiveMessageOnPort(this.#port)) {
      files.add(fileURLToPath(entry.message));
    }
    return files;
  }

  close(): void {
    this.#port.close();
  }
}
