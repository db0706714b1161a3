import { readFile } from 'node:fs/promises';
import { type Static, Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';
import type OpenAI from 'openai';
import { type AgentContext, type AgentOutput, approvalParts, textOf, trajectory } from 'rivulet';
import { type McpTools, mcpTools } from 'rivulet/remote/mcp';
import { catchError, concat, concatMap, defer, from, map, type Observable, of, switchMap } from 'rxjs';
import { calculate, calculator } from './_calculate.ts';

const texts = Type.Record(Type.String(), Type.String());

/** A file of MCP servers as other hosts have it, with `allowNetworks` and `approve` in addition. */
const ToolFile = Type.Object({
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
type ToolFile = Static<typeof ToolFile>;
type ToolServer = ToolFile['mcpServers'][string];

/** Characters of a result that the model gets. */
const maxResult = 50_000;

/** A part of the output, or at last the result for the model. */
export type ToolOutput = { readonly output: AgentOutput } | { readonly result: string };

/** The tools of the chat: the calculator, and those of MCP servers as `SERVER__TOOL`. */
export class ChatTools {
  readonly #servers: ReadonlyMap<string, { readonly tools: McpTools; readonly approve: ToolServer['approve'] }>;

  constructor({ mcpServers }: ToolFile = { mcpServers: {} }) {
    const opened = Object.entries(mcpServers).map(([name, server]) => {
      return [name, { tools: open(name, server), approve: server.approve }] as const;
    });
    this.#servers = new Map(opened);
  }

  /** The tools of the file that the variable `MCP_SERVERS` names. @throws Error that names what is wrong with the file */
  static async load({ MCP_SERVERS: path }: NodeJS.ProcessEnv): Promise<ChatTools> {
    if (!path) return new ChatTools();
    const file: unknown = JSON.parse(await readFile(path, 'utf8'));
    const [problem] = Value.Errors(ToolFile, file);
    if (problem !== undefined) throw new Error(`${path}${problem.path}: ${problem.message}`);
    return new ChatTools(Value.Decode(ToolFile, file));
  }

  /** For the model. A server that cannot be reached has no tools in this round. */
  async definitions({ log }: AgentContext): Promise<OpenAI.ChatCompletionTool[]> {
    const lists = [...this.#servers].map(async ([server, { tools }]) => {
      try {
        return (await tools.tools()).map(({ name, description = '', input_schema: parameters }) => ({
          type: 'function' as const,
          function: { name: `${server}__${name}`, description, parameters },
        }));
      } catch (error) {
        log.warn(`the tools of ${server} cannot be listed: ${error}`);
        return [];
      }
    });
    return [{ type: 'function', function: calculator }, ...(await Promise.all(lists)).flat()];
  }

  /** Runs a tool that the model has called. Its errors are results as well, so that the model can correct itself. */
  call(called: string, args: string, context: AgentContext): Observable<ToolOutput> {
    const [server = '', name = ''] = called.split(/__(.*)/s);
    const known = this.#servers.get(server);
    if (known === undefined) return this.#calculate(called, args, context);
    const { tools, approve } = known;
    return defer(() => {
      const input = parsed(args);
      if (input === undefined) return failed(name, { arguments: args }, 'The arguments are not a JSON object.');
      const run = (): Observable<ToolOutput> => resultsOf(tools.call(name, input, context), name, input);
      if (approve !== true && !(Array.isArray(approve) && approve.includes(name))) return run();
      return askApproval(context, called, input).pipe(
        switchMap((yes) => (yes ? run() : failed(name, input, 'The user did not allow this call.'))),
      );
    });
  }

  #calculate(called: string, args: string, context: AgentContext): Observable<ToolOutput> {
    if (called !== calculator.name) return failed(called, {}, `There is no tool ${called}.`);
    const call = context.tool(
      called,
      parsed(args) ?? { arguments: args.slice(0, 1_000) },
      async () => (await calculate(args)).output,
    );
    return from(call).pipe(
      concatMap((output) => {
        const { tool_output } = output.metadata?.kind === 'trajectory' ? output.metadata : {};
        return tool_output === undefined ? [{ output }] : [{ output }, { result: JSON.stringify(tool_output) }];
      }),
    );
  }
}

function open(name: string, { url, headers, allowNetworks, command, args, env }: ToolServer): McpTools {
  if (url !== undefined) {
    return mcpTools(url, { ...(headers && { headers }), ...(allowNetworks && { allowNetworks }) });
  }
  if (command === undefined) throw new Error(`mcpServers/${name}: expected a url or a command`);
  return mcpTools({ command, ...(args && { args }), ...(env && { env }) });
}

/** The step and the events of a call, and at last the text of its result. */
function resultsOf(outputs: Observable<AgentOutput>, name: string, input: object): Observable<ToolOutput> {
  let result = '';
  const shown = outputs.pipe(
    concatMap((output): ToolOutput[] => {
      if (typeof output === 'object' && ('generic' in output || 'metadata' in output)) return [{ output }];
      result += `${textOf(output)}\n`;
      return [];
    }),
  );
  return concat(
    shown,
    defer(() => of({ result: result.slice(0, maxResult) })),
  ).pipe(
    catchError((error) => {
      const { code, message } = Object(error);
      // The call has shown what the tool itself says.
      return code === 'tool_failed' ? of({ result: `Error: ${message}` }) : failed(name, input, String(message));
    }),
  );
}

const failed = (tool_name: string, input: object, error: string): Observable<ToolOutput> =>
  of(
    { output: trajectory({ tool_name, tool_input: { ...input }, tool_output: { error } }) },
    { result: `Error: ${error}` },
  );

/** Asks whether a tool may run. */
function askApproval(context: AgentContext, tool_name: string, tool_input: object): Observable<boolean> {
  const parts = approvalParts(tool_name, tool_input);
  const schema = { type: 'boolean', title: `Run ${tool_name}` };
  return context
    .await({ role: 'agent', parts }, { schema })
    .pipe(map(({ message }) => (message.parts.find(isJson)?.content ?? textOf(message)).trim() === 'true'));
}

const isJson = ({ content_type = '' }: { content_type?: string }): boolean =>
  content_type.startsWith('application/json');

function parsed(args: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(args || '{}');
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}
