#!/usr/bin/env node
import { copyFile, mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { parseArgs } from 'node:util';
import { shellQuote } from '../../../src/cli/terminal/format.ts';
import { type PackageManager, packageManager, scriptCommand } from './package-manager.ts';
import { packageName, projectFiles } from './project.ts';
import { isTemplate, type Template, templates } from './templates.ts';

const help = `Usage: npm create rivulet [folder] [-- options]

Makes a project with an agent and its test. Without a folder, it asks for one on a terminal, and otherwise takes the
current folder.

  --force         write into a folder that is not empty, and replace files of the same name
  --template NAME what it begins with: ${Object.keys(templates).join(', ')} (default hello)
  --rivulet FILE  use the Rivulet that npm pack has written into this file, which is copied into the project
  --help          print this text`;

/** @throws Error with one line that says what to do instead */
async function create(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      force: { type: 'boolean', default: false },
      rivulet: { type: 'string' },
      template: { type: 'string', default: 'hello' },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return console.log(help);
  if (positionals.length > 1) throw new Error(`expected one folder, got ${positionals.join(' ')}`);
  const { template } = values;
  if (!isTemplate(template))
    throw new Error(`--template ${template}: expected one of ${Object.keys(templates).join(', ')}`);
  const folder = resolve(positionals[0] ?? (await askFolder()));
  if (!values.force && !(await isEmpty(folder))) {
    throw new Error(`${folder} is not empty; choose another folder, or add --force to replace files of the same name`);
  }
  const packed = values.rivulet === undefined ? undefined : await packedFile(values.rivulet);
  const manager = packageManager(process.env.npm_config_user_agent);
  const from: Template = templates[template];
  const files = projectFiles(packageName(basename(folder)), manager, from, packed && `file:./${basename(packed)}`);
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  if (packed !== undefined) await copyFile(packed, join(folder, basename(packed)));
  console.log(nextSteps(folder, Object.keys(files), manager));
}

/** Asks on a terminal only: a script would wait for ever. */
async function askFolder(): Promise<string> {
  if (!process.stdin.isTTY) return '.';
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const closed = new Promise<never>((_, reject) => terminal.once('close', () => reject(new Error('no folder given'))));
  const answer = await Promise.race([terminal.question('Folder (my-agents): '), closed]);
  closed.catch(() => {});
  terminal.close();
  return answer.trim() || 'my-agents';
}

async function isEmpty(folder: string): Promise<boolean> {
  try {
    return (await readdir(folder)).every((name) => name === '.git');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT') return true;
    if (code === 'ENOTDIR') throw new Error(`${folder} is a file, or is inside of one; choose another folder`);
    throw error;
  }
}

/** A package manager takes a file for a package only if its name ends in .tgz. */
async function packedFile(path: string): Promise<string> {
  const isFile = await stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
  if (isFile && path.endsWith('.tgz')) return path;
  throw new Error(`--rivulet ${path}: expected a .tgz file; run "npm pack" in a clone of Rivulet to write one`);
}

function nextSteps(folder: string, files: readonly string[], manager: PackageManager): string {
  const path = relative('.', folder);
  return [
    `Wrote ${files.join(', ')}. Next steps:`,
    '',
    ...(path === '' ? [] : [`  cd ${quoted(path)}`]),
    `  ${manager.name} install`,
    `  ${scriptCommand(manager, 'test')}`,
    `  ${scriptCommand(manager, 'dev')}`,
  ].join('\n');
}

/** The path as one word for a shell; not all shells of Windows know single quotes, and no path there has a double one. */
const quoted = (path: string): string => (process.platform === 'win32' ? `"${path}"` : shellQuote(path));

create().catch((error: unknown) => {
  console.error(`create-rivulet: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 2;
});
