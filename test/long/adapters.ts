/**
 * Agents of each adapter whose processes are killed: `tsx test/long/adapters.ts [chats] [seed]`, after a build.
 *
 * First a chat of three turns with each adapter and each reply, killed in each phase of its first turn; prints what the model
 * of the third turn was told. Then many chats at once, on two nodes that are killed in turn, with each shared store that is
 * installed. Exits with 1 if there are faults.
 */
import { postgresPlace, redisPlace } from '../support/servers.ts';
import { dyingNodes } from './adapters/dying-nodes.ts';
import { Matrix } from './adapters/matrix.ts';
import { replies } from './adapters/paid-chat.ts';
import { phases } from './adapters/phases.ts';

const [chats = 20, seed = Date.now() % 1_000_000] = process.argv.slice(2).map(Number);
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

for (const open of [redisPlace, postgresPlace]) {
  const place = await open();
  if (place === undefined) continue;
  const { kills, faults: found } = await dyingNodes({ store: place.url, chats, seed });
  await place.remove();
  print(`${chats} chats at ${new URL(place.url).protocol} with seed ${seed}: ${kills} kills, ${found.length} faults`);
  faults.push(...found);
}
for (const fault of faults) print(fault);
if (faults.length > 0) process.exitCode = 1;
