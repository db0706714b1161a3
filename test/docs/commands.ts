import { type Block, inLanguage } from './blocks.ts';

/** Whether a block of shell has a command that the tests of servers run, because it starts a process. */
export const isCommand = ({ text }: Block): boolean => /\b(npx|npm|rivulet|sqlite3|redis-cli|psql)\b/.test(text);

const startsServer = /^\s*(?:\w+=\S+ )*(?:npx )?(?:rivulet (?:serve|worker)|npm (?:start|run dev))\b/;

/** The lines of a block that start a server and do not return, without their comments. */
export const servingLines = ({ text }: Block): string[] =>
  text
    .split('\n')
    .filter((line) => startsServer.test(line))
    .map((line) => line.replace(/\s+#.*$/, '').trim());

/** The block without the lines that start a server. */
export const withoutServers = (block: Block): Block => ({
  ...block,
  text: block.text
    .split('\n')
    .filter((line) => !startsServer.test(line))
    .join('\n'),
});

/** The blocks of shell of a page, in their order, without the lines that start a server. */
export const shellOf = (page: string): Block[] =>
  inLanguage('sh')
    .filter((block) => block.page === page)
    .map(withoutServers);
