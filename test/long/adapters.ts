/**
 * Agents of each adapter whose process is killed: `tsx test/long/adapters.ts [chats] [seed]`, after a build.
 *
 * First each adapter, in each phase of a turn, with each reply; prints what the model of the third turn was told. Then many
 * chats at once, on two nodes that are killed in turn. Exits with 1 if there are faults.
 */
import { Matrix } from './adapters/matrix.ts';
import { replies } from './adapters/paid-chat.ts';
import { phases } from './adapters/phases.ts';

const print = (line: string): void => void process.stdout.write(`${line}\n`);
const faults: string[] = [];

const matrix = await Matrix.open();
for (const phase of phases) {
  for (const reply of replies) {
    for (const { name, told, faults: found } of await matrix.play(phase, reply)) {
      print(`${found.length === 0 ? 'ok   ' : 'FAULT'} ${name}\n      ${told}`);
      faults.push(...found.map((fault) => `${fault} (${name})`));
    }
  }
}
await matrix.close();
for (const fault of faults) print(fault);
if (faults.length > 0) process.exitCode = 1;
