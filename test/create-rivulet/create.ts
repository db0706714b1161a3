import { execFile } from 'node:child_process';
import { resolve } from 'node:path';
import { promisify } from 'node:util';

const main = resolve(import.meta.dirname, '../../packages/create-rivulet/dist/main.js');

/** Runs create-rivulet from its build, as the package manager of this user agent does; its stdin is not a terminal. */
export const create = (cwd: string, args: string[], userAgent = 'npm/11.0.0 node/v20.19.0 linux x64') =>
  promisify(execFile)(process.execPath, [main, ...args], { cwd, env: { npm_config_user_agent: userAgent } });
