// Fails on a production package whose licence is not on the list. Reads the lock file, so that it needs no network and
// covers the packages of all platforms. A licence with conditions for users of the package needs a decision first.
import { readFileSync } from 'node:fs';

const allowed = new Set(['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD', 'Apache-2.0', 'BlueOak-1.0.0']);
/** Whether an SPDX expression is allowed: one of the alternatives, and all of the parts. */
const isAllowed = (expression) =>
  expression
    .replace(/^\((.*)\)$/, '$1')
    .split(' OR ')
    .some((choice) => choice.split(' AND ').every((part) => allowed.has(part)));

const { packages } = JSON.parse(readFileSync(process.argv[2] ?? 'package-lock.json', 'utf8'));
const production = Object.entries(packages).filter(
  ([path, { dev, devOptional, link }]) => path.includes('node_modules/') && !dev && !devOptional && !link,
);
const refused = production.filter(([, { license = 'no licence' }]) => !isAllowed(license));
for (const [path, { license = 'no licence' }] of refused) console.error(`${path}: ${license} is not on the list`);
console.log(`${production.length} production packages, ${refused.length} with a licence that is not on the list`);
process.exitCode = refused.length > 0 ? 1 : 0;
