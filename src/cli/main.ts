#!/usr/bin/env node
import { exit } from './exit-codes.ts';
import { execute } from './program.ts';
import { terminal } from './terminal/terminal.ts';

// Other users see the arguments of a process; a title replaces them.
if (process.argv.some((argument) => argument.startsWith('--token'))) process.title = 'rivulet';

// A closed pipe, as after `| head`, is not an error.
terminal.onOutputClosed(() => process.exit(exit.completed));

execute(process.argv.slice(2));
