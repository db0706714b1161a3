/**
 * Attacks a server, in a process of its own: the others' times must not include its work. Its arguments are the name
 * of the attack, the URL, the API key and the number of connections. It prints `ready` when all connections were
 * opened, and for each line of its input what it has seen so far.
 */
import { createInterface } from 'node:readline';
import { Attacker, type AttackName, attacks, prepared } from './attacks.ts';

const [name = '', url = '', key = '', connections = ''] = process.argv.slice(2);
const isAttack = (text: string): text is AttackName => text in attacks;
if (!isAttack(name)) throw new Error(`there is no attack ${name}`);
const { hostname, port } = new URL(url);
const attacker = new Attacker(name, await prepared(name, { host: hostname, port: Number(port), key }));
await attacker.start(Number(connections));
console.log('ready');
createInterface({ input: process.stdin })
  .on('line', () => console.log(JSON.stringify(attacker.tally)))
  // The process that started this one has ended.
  .on('close', () => process.exit());
