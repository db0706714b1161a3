import { readFile } from 'node:fs/promises';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import type { AgentContext } from 'rivulet';
import { type Tool, toolOf } from 'rivulet/llm';
import { type McpTools, mcpTools } from 'rivulet/remote/mcp';

const texts = Type.Record(Type.String(), Type.String());

/** A file of MCP servers as other hosts have it, with `allowNetworks` and `approve` in addition. */
const ServerFile = Type.Object({
  mcpServers: Type.Record(
    Type.String({ pattern: '^[a-zA-Z0-9-]{1,30}$' }),
    Type.Object({
      url: Type.Optional(Type.String()),
      headers: Type.Optional(texts),
      allowNetworks: Type.Optional(Type.Array(Type.String())),
      command: Type.Optional(Type.String()),
      args: Type.Optional(Type.Array(Type.String())),
      env: Type.Optional(texts),
      /** Tools that need an approval; `true` for all. */
      approve: Type.Optional(Type.Union([Type.Boolean(), Type.Array(Type.String())])),
    }),
  ),
});
type ServerFile = Static<typeof ServerFile>;
type Server = ServerFile['mcpServers'][string];

/** The tools of MCP servers, as `SERVER__TOOL`. */
export class McpServers {
  readonly #servers: ReadonlyMap<string, { readonly tools: McpTools; readonly approve: Server['approve'] }>;

  constructor({ mcpServers }: ServerFile = { mcpServers: {} }) {
    const opened = Object.entries(mcpServers).map(([name, server]) => {
      return [name, { tools: open(name, server), approve: server.approve }] as const;
    });
    this.#servers = new Map(opened);
  }

  /** The servers of the file that the variable `MCP_SERVERS` names. @throws Error that names what is wrong with the file */
  static async load({ MCP_SERVERS: path }: NodeJS.ProcessEnv): Promise<McpServers> {
    if (!path) return new McpServers();
    const file: unknown = JSON.parse(await readFile(path, 'utf8'));
    const [problem] = Value.Errors(ServerFile, file);
    if (problem !== undefined) throw new Error(`${path}${problem.path}: ${problem.message}`);
    return new McpServers(Value.Decode(ServerFile, file));
  }

  /** A server that cannot be reached has no tools. */
  async tools({ log }: AgentContext): Promise<Tool[]> {
    const lists = [...this.#servers].map(async ([server, { tools, approve }]) => {
      try {
        return (await tools.tools()).map(({ name, description = '', input_schema: input }) =>
          toolOf(
            {
              name: `${server}__${name}`,
              description,
              input,
              approval: approve === true || (Array.isArray(approve) && approve.includes(name)),
            },
            (args, context) => tools.call(name, { ...args }, context),
          ),
        );
      } catch (error) {
        log.warn(`the tools of ${server} cannot be listed: ${error}`);
        return [];
      }
    });
    return (await Promise.all(lists)).flat();
  }
}

function open(name: string, { url, headers, allowNetworks, command, args, env }: Server): McpTools {
  if (url !== undefined) {
    return mcpTools(url, { ...(headers && { headers }), ...(allowNetworks && { allowNetworks }) });
  }
  if (command === undefined) throw new Error(`mcpServers/${name}: expected a url or a command`);
  return mcpTools({ command, ...(args && { args }), ...(env && { env }) });
}
