import { register } from 'node:module';
import { fileURLToPath } from 'node:url';
import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads';

/**
 * Lets `import('file:…?rivulet=2')` load that module anew, and with it all that it imports of the project, packages
 * left out. What is not used any more stays in memory: Node has no way to let go of a module.
 */
export class ModuleVersions {
  readonly #port: MessagePort;

  /** After tsx, so that tsx gets to see the marked URLs. */
  constructor() {
    const { port1, port2 } = new MessageChannel();
    register('./reload-hooks.js', { parentURL: import.meta.url, data: port2, transferList: [port2] });
    this.#port = port1;
  }

  /** The files that were imported since this was asked last. */
  imported(): Set<string> {
    const files = new Set<string>();
    for (let one = receiveMessageOnPort(this.#port); one !== undefined; one = receiveMessageOnPort(this.#port)) {
      files.add(fileURLToPath(one.message));
    }
    return files;
  }

  close(): void {
    this.#port.close();
  }
}
