// After `npm install` behind a registry that does not carry the packages of other platforms:
// npm leaves those out of package-lock.json, and `npm ci` then refuses the lock everywhere.
// This adds an entry for each, with the platform that its name says, as a full registry would have led to.
import { readFileSync, writeFileSync } from 'node:fs';

// Of the project, or the one that the argument names.
const path = process.argv[2] ?? new URL('../package-lock.json', import.meta.url);
const lock = JSON.parse(readFileSync(path, 'utf8'));
const systems = ['android', 'darwin', 'freebsd', 'linux', 'netbsd', 'openbsd', 'openharmony', 'sunos', 'win32', 'aix'];
const processors = ['arm64', 'arm', 'x64', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'wasm32'];
let added = 0;

for (const owner of Object.values({ ...lock.packages })) {
  for (const [name, range] of Object.entries(owner.optionalDependencies ?? {})) {
    const key = `node_modules/${name}`;
    if (key in lock.packages) continue;
    const words = name.split(/[/-]/);
    const os = systems.filter((one) => words.includes(one));
    const cpu = processors.filter((one) => words.includes(one));
    const libc = words.includes('musl') ? ['musl'] : words.includes('gnu') ? ['glibc'] : undefined;
    lock.packages[key] = {
      version: range.replace(/^[\^~]/, ''),
      ...(cpu.length > 0 && { cpu }),
      ...(owner.dev && { dev: true }),
      ...(libc && { libc }),
      license: owner.license,
      optional: true,
      ...(os.length > 0 && { os }),
    };
    added += 1;
  }
}

const sorted = Object.entries(lock.packages).sort(([a], [b]) => a.localeCompare(b, 'en'));
writeFileSync(path, `${JSON.stringify({ ...lock, packages: Object.fromEntries(sorted) }, null, 2)}\n`);
console.log(`${added} packages of other platforms added to the lock`);
