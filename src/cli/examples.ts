/** Commands to try, and what each does. */
const examples: Readonly<Record<string, readonly [command: string, does: string][]>> = {
  rivulet: [
    ['rivulet new greeter', 'writes a first agent'],
    ['rivulet serve --watch', 'serves the agents of agents/, and reloads them'],
    ['rivulet chat demo', 'talks with an agent'],
    ["rivulet run echo 'Hello'", 'runs an agent once'],
  ],
  serve: [
    ['rivulet serve', 'serves agents/ at http://127.0.0.1:8000'],
    ['rivulet serve my-agents --port 9000 --watch', 'other folder and port, and reloads agents'],
    ['rivulet serve --store memory:', 'keeps nothing'],
    ['rivulet serve --store redis://127.0.0.1:6379', 'one of several nodes'],
  ],
  worker: [['rivulet worker --store postgres://127.0.0.1/rivulet', 'executes runs of the servers of that database']],
  keys: [
    ['rivulet keys new --principal alice --file keys.yaml', 'prints a key, and adds its record to the file'],
    ["rivulet keys new --principal ci --scope runs:write,runs:read --agent 'test-*'", 'for some calls and agents only'],
  ],
  config: [
    ['rivulet config', 'the settings in force, and where each came from'],
    ['rivulet config --check --config production.yaml', 'for CI: exit code 2 at a mistake'],
    ['rivulet config --schema > rivulet.schema.json', 'for an editor'],
  ],
  doctor: [['rivulet doctor', 'checks what serve would need']],
  backup: [['rivulet backup /backups/today.db', 'copies the SQLite store, also while a server writes to it']],
  restore: [['rivulet restore /backups/today.db', 'replaces the SQLite store; stop the server first']],
  new: [['rivulet new greeter', 'writes agents/greeter.ts and its test']],
  chat: [
    ['rivulet chat demo', 'talks with an agent; /help lists what can be typed'],
    ['rivulet chat demo --out files', 'saves the files that it sends'],
    ['rivulet chat demo --session 0d9c9a3e-5a76-4f0c-9b52-3f2d5d1c9a11', 'goes on with a conversation'],
  ],
  run: [
    ["rivulet run echo 'Hello'", 'prints the answer'],
    ['git diff | rivulet run summarize - > summary.txt', 'reads stdin, writes the answer to a file'],
    ['rivulet run echo --file sales.csv --out got', 'sends a file, and saves those of the answer'],
    ["rivulet run echo 'Hello' --json | jq .type", 'prints the events'],
  ],
  watch: [
    ['rivulet watch 0d9c9a3e-5a76-4f0c-9b52-3f2d5d1c9a11', 'from the beginning'],
    ['rivulet watch 0d9c9a3e-5a76-4f0c-9b52-3f2d5d1c9a11 --after 12', 'after the event with the number 12'],
  ],
  resume: [
    ['rivulet resume 0d9c9a3e-5a76-4f0c-9b52-3f2d5d1c9a11', 'asks the question of the run here'],
    ['rivulet resume 0d9c9a3e-5a76-4f0c-9b52-3f2d5d1c9a11 yes', 'replies'],
    [`rivulet resume 0d9c9a3e-5a76-4f0c-9b52-3f2d5d1c9a11 '{"days":3}'`, 'replies to a question with a form'],
  ],
  retry: [['rivulet retry 0d9c9a3e-5a76-4f0c-9b52-3f2d5d1c9a11', 'after its agent was mended']],
  cancel: [['rivulet cancel 0d9c9a3e-5a76-4f0c-9b52-3f2d5d1c9a11', 'cancels the run']],
  erase: [
    ['rivulet erase', 'all that the caller of RIVULET_TOKEN has'],
    ['rivulet erase --owner key:alice --yes', 'with the token of an operator'],
  ],
  record: [['rivulet record 0d9c9a3e-5a76-4f0c-9b52-3f2d5d1c9a11 > run.json', 'a fixture for rivulet/testing']],
  agents: [
    ['rivulet agents', 'a table'],
    ['rivulet agents demo', 'with the addresses for the clients of each protocol'],
    ['rivulet agents --json | jq -r .name', 'the names'],
  ],
  runs: [
    ['rivulet runs', 'the last 20'],
    ['rivulet runs --status awaiting', 'runs that wait for a reply'],
    ['rivulet runs --parked', 'runs that a wrong deploy has left, and why'],
    ['rivulet runs --agent demo --limit 100 --json', 'lines of JSON'],
  ],
};

/** The examples of a command as a section of its help. */
export function examplesHelp(command: string): string {
  const rows = examples[command] ?? [];
  const width = Math.max(0, ...rows.map(([line]) => line.length).filter((length) => length <= 60));
  const lines = rows.map(([line, does]) =>
    line.length > width ? `  $ ${line}\n  ${' '.repeat(width)}    ${does}` : `  $ ${line.padEnd(width)}  ${does}`,
  );
  return lines.length === 0 ? '' : ['', 'Examples:', ...lines].join('\n');
}
