import { type FSWatcher, readdirSync, watch } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { concatMap, debounceTime, type Observable, Subject, type Subscription } from 'rxjs';
import { type Hosted, Registry } from '../engine/registry.ts';
import { agentFiles, allowTypeScript, aside, loadAgent, source } from './load-agents.ts';
import { ModuleVersions } from './module-versions.ts';
import { terminal } from './terminal.ts';

/** Milliseconds without another change after which what has changed is loaded: editors and git write in bursts. */
const quiet = 50;

/** The agents of some folders, loaded again whenever one of their files, or one that these import, changes. */
export class WatchedAgents {
  readonly registry = new Registry([]);
  readonly #folders: readonly string[];
  readonly #modules: ModuleVersions;
  readonly #changes = new Subject<string>();
  readonly #reloading: Subscription;
  /** By file, as it was when it last loaded. */
  #hosted = new Map<string, Hosted>();
  #imported = new Set<string>();
  #watchers = new Map<string, FSWatcher>();
  #version = 0;

  private constructor(folders: readonly string[]) {
    this.#folders = folders.map((folder) => resolve(folder));
    this.#modules = new ModuleVersions();
    this.#reloading = this.#reloads().subscribe();
  }

  /** @throws Error where a folder cannot be read, or two agents have one name; a file that does not load is reported */
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
      debounceTime(quiet),
      concatMap(async (changed) => {
        const before = this.registry.list();
        try {
          await this.#load();
        } catch (error) {
          return report(`${error instanceof Error ? error.message : String(error)}; the agents stay as they were`);
        }
        const after = this.registry.list();
        const names = after.map(({ manifest }) => manifest.name);
        const gone = before.map(({ manifest }) => manifest.name).filter((name) => !names.includes(name));
        const news = [
          `${relative('.', changed)} has changed; now hosting ${names.join(', ') || 'nobody'}`,
          ...gone.map((name) => `${name} is gone`),
        ];
        terminal.print(news.join('; '));
      }),
    );
  }

  // All of them, each time: which agents a helper is a part of, only Node knows, and loading one takes milliseconds.
  async #load(): Promise<void> {
    this.#version += 1;
    const files = (await Promise.all(this.#folders.map(agentFiles))).flat();
    // Before the first of them is read, so that no change can fall between. Anew, because a folder that was taken
    // away and put back, as git does, is another one than was watched.
    const before = this.#watchers;
    this.#watchers = new Map();
    this.#watch([...this.#folders.flatMap(withFolders), ...[...this.#imported].map(dirname)]);
    for (const watcher of before.values()) watcher.close();
    const loaded = new Map<string, Hosted>();
    for (const file of files) {
      const stays = this.#hosted.get(file);
      const hosted = await loadAgent(file, this.#version).catch((error: Error) => {
        report(`${error.message}; ${stays ? 'what it held before stays' : 'it is left out'}`);
        return stays;
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
        if (name === null || this.#imported.has(path) || this.#mayHold(folder, name)) this.#changes.next(path);
      });
      // The folder itself is gone, which is a change; the next load sees what is left.
      watcher.on('error', () => this.#changes.next(folder));
      this.#watchers.set(folder, watcher);
    }
  }

  /** Whether a file, or a folder, of that name can have to do with an agent. */
  #mayHold(folder: string, name: string): boolean {
    const within = this.#folders.some((one) => folder === one || dirname(folder) === one);
    return within && !aside.test(name) && (source.test(name) || !name.includes('.'));
  }
}

const withFolders = (folder: string): string[] => [
  folder,
  ...readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !aside.test(entry.name) && entry.name !== 'node_modules')
    .map(({ name }) => join(folder, name)),
];

const report = (message: string): void => terminal.error(`rivulet: ${message}`);
