import { KindGuard, type Static, type TSchema, Type } from '@sinclair/typebox';
import { isObject } from '../../core/json.ts';
import { Limits } from '../../engine/limits.ts';
import { parseKeyPairs } from '../../http/auth/key-records.ts';
import { ConnectionLimits, HttpLimits, minSecretLength } from '../../http/limits/limits.ts';
import { addressRule } from '../../http/outbound/address-guard.ts';
import { hostOption, originOption } from '../../http/pages/allowed-origins.ts';
import { publicUrlProblem } from '../../http/server-url.ts';
import { ownerPattern } from '../../schema/api.ts';
import { isProtocol, protocolNames } from '../../server/protocols.ts';
import { storeName, unknownStore } from '../../stores/open.ts';
import { readStoreUrl, storeForms } from '../../stores/store-url.ts';

/** How a setting is given where it is not in a file. */
interface Names {
  /** As commander has it: `--port <port>`, `--watch`, `--no-docs`. */
  readonly flag?: string;
  /** The help of the flag, where the description fits only the key in a file, as for `--no-docs`. */
  readonly help?: string;
  /** The environment variable. */
  readonly env?: string;
  /**
   * The value is masked where it is shown; of a URL, only its password. The value may also come from a file: the one
   * that the variable `ENV_FILE` names.
   */
  readonly secret?: 'text' | 'url';
  /** The command `worker` has the setting as well as `serve`. */
  readonly worker?: boolean;
  /** Checks a text, or each item of a list, beyond the schema. @throws Error that says what is wrong */
  readonly check?: (text: string) => unknown;
}

/** Declares a setting: its description is its help, its default the value where nothing else is given. */
const setting = <T extends TSchema>(names: Names, schema: T): T => ({ ...schema, names });

/** Its type is that of the schema: a spread has one that the declarations of the build cannot name. */
const withDefault = <T extends TSchema>(value: unknown, schema: T): T => ({ ...schema, default: value });

const section = <T extends Record<string, TSchema>>(properties: T) =>
  Type.Object(properties, { additionalProperties: false, default: {} });

const text = (description: string, fallback: string) => Type.String({ description, default: fallback });
const address = (description: string, fallback: string) =>
  Type.String({ minLength: 1, description, default: fallback });
const list = (description: string, fallback: string[] = []) =>
  Type.Array(Type.String({ minLength: 1 }), { description, default: fallback });
const secrets = (description: string) =>
  Type.Array(Type.String({ minLength: minSecretLength }), { description, default: [] });
const onOff = (description: string, fallback: boolean) => Type.Boolean({ description, default: fallback });
const oneOf = <T extends string>(values: readonly T[], fallback: NoInfer<T>, description: string) =>
  Type.Union(
    values.map((value) => Type.Literal(value)),
    { description, default: fallback },
  );

const storeUrl = (url: string): void => {
  if (/[\r\n]/.test(url)) throw new Error('expected one line');
  if (readStoreUrl(url) === undefined) throw unknownStore(storeName(url));
};

const publicUrl = (url: string): void => {
  const problem = publicUrlProblem(url);
  if (problem !== undefined) throw new Error(problem);
};

const protocolName = (name: string): void => {
  if (name === 'none' || isProtocol(name)) return;
  throw new Error(`expected some of ${protocolNames.join(', ')}, or none; got ${name}`);
};

/**
 * All settings of `serve` and `worker`: a row is a key of the configuration file, a flag and a variable, with one
 * description and one check. The flags, their help, `rivulet config`, its JSON Schema and the table of
 * docs/configuration.md come from here; a command reads `settings.port`.
 */
export const Settings = section({
  agents: setting({ worker: true }, list('folders with agents; arguments take precedence', ['agents'])),
  store: setting(
    { flag: '--store <url>', env: 'RIVULET_STORE', secret: 'url', worker: true, check: storeUrl },
    text(storeForms, 'sqlite:./data/rivulet.db'),
  ),
  publicUrl: setting(
    { flag: '--public-url <url>', env: 'PUBLIC_URL', worker: true, check: publicUrl },
    Type.Optional(Type.String({ description: 'URL under which clients reach the server' })),
  ),
  allowNetworks: setting(
    {
      flag: '--allow-network <cidrs>',
      env: 'RIVULET_ALLOW_NETWORK',
      worker: true,
      check: (network) => addressRule([network]),
    },
    list('private networks whose session resources may be read, and where webhooks may go, comma-separated'),
  ),
  watch: setting({ flag: '--watch' }, onOff('reload agents when their files change', false)),
  host: setting({ flag: '--host <host>', env: 'HOST' }, address('address to listen on', '127.0.0.1')),
  port: setting(
    { flag: '--port <port>', env: 'PORT' },
    Type.Integer({ minimum: 0, maximum: 65_535, default: 8000, description: 'port to listen on; 0 picks a free one' }),
  ),
  allowHosts: setting(
    { flag: '--allow-host <hosts>', env: 'RIVULET_ALLOW_HOST', check: hostOption },
    list('additional host names to accept in requests, comma-separated; * accepts all'),
  ),
  allowOrigins: setting(
    { flag: '--allow-origin <origins>', env: 'RIVULET_ALLOW_ORIGIN', check: originOption },
    list('origins of web pages that may call the server, comma-separated; * allows all'),
  ),
  trustProxy: setting(
    {
      flag: '--trust-proxy <cidrs>',
      env: 'RIVULET_TRUST_PROXY',
      check: (network) => addressRule([network], 'trustProxy'),
    },
    list('addresses and networks of proxies whose X-Forwarded-For names the client, comma-separated'),
  ),
  trustTraceContext: setting(
    { flag: '--trust-trace-context', env: 'RIVULET_TRUST_TRACE_CONTEXT' },
    onOff('make spans of runs children of the traceparent of requests; otherwise they link to it', false),
  ),
  captureContent: setting(
    { flag: '--capture-content <when>', env: 'RIVULET_CAPTURE_CONTENT', worker: true },
    oneOf(
      ['auto', 'on', 'off'],
      'auto',
      'keep what models were given and answered, and lines of context.log, for the inspector; auto: without authentication',
    ),
  ),
  worker: setting(
    { flag: '--no-worker', help: 'serve requests only; other nodes that share the store execute the runs' },
    onOff('execute runs; if false, other nodes that share the store do', true),
  ),
  docs: setting(
    { flag: '--no-docs', help: 'do not serve /docs and /openapi.json' },
    onOff('serve /docs and /openapi.json', true),
  ),
  protocols: setting(
    { flag: '--protocols <names>', env: 'RIVULET_PROTOCOLS', check: protocolName },
    list(
      `protocols that are served beside this server's own API, comma-separated, of ${protocolNames.join(', ')}; or none`,
      protocolNames,
    ),
  ),
  playground: setting(
    { flag: '--no-playground', help: 'do not serve the playground at /' },
    onOff('serve the playground at /', true),
  ),
  auth: section({
    required: setting(
      { flag: '--no-auth', env: 'RIVULET_AUTH', help: 'listen on a public address without authentication' },
      onOff('refuse to listen on a public address without authentication', true),
    ),
    keyFile: setting(
      { flag: '--keys <file>', env: 'RIVULET_KEYS' },
      Type.Optional(Type.String({ description: 'file with the records of API keys' })),
    ),
    apiKeys: setting(
      { env: 'RIVULET_API_KEYS', secret: 'text', check: parseKeyPairs },
      Type.Optional(Type.String({ description: 'PRINCIPAL=KEY pairs, comma-separated' })),
    ),
    jwt: section({
      issuer: setting(
        { flag: '--jwt-issuer <url>', env: 'RIVULET_JWT_ISSUER' },
        Type.Optional(Type.String({ description: 'issuer of the accepted JWTs' })),
      ),
      audience: setting(
        { flag: '--jwt-audience <names>', env: 'RIVULET_JWT_AUDIENCE' },
        list('names of this server in JWTs, comma-separated'),
      ),
      jwks: setting(
        { flag: '--jwks <url>', env: 'RIVULET_JWKS' },
        Type.Optional(Type.String({ description: 'public keys of the issuer: a URL or a file' })),
      ),
      type: Type.Optional(Type.String({ description: 'required typ of JWTs, such as at+jwt' })),
      tenantClaim: setting(
        { flag: '--jwt-tenant-claim <name>', env: 'RIVULET_JWT_TENANT_CLAIM' },
        Type.Optional(Type.String({ description: 'claim of JWTs that names the tenant' })),
      ),
      agentsClaim: setting(
        { flag: '--jwt-agents-claim <name>', env: 'RIVULET_JWT_AGENTS_CLAIM' },
        Type.Optional(Type.String({ description: 'claim of JWTs that lists the allowed agents' })),
      ),
      claims: list('claims of JWTs that agents see in context.principal'),
    }),
    ticketSecrets: setting(
      { env: 'RIVULET_TICKET_SECRETS', secret: 'text' },
      secrets(
        `secrets that sign stream tickets, ${minSecretLength} characters or more, the newest first, comma-separated`,
      ),
    ),
  }),
  runTtlByOwner: setting(
    { worker: true },
    Type.Record(Type.String({ pattern: ownerPattern }), Type.Integer({ minimum: 0 }), {
      additionalProperties: false,
      description: 'milliseconds for which final runs of an owner, such as key:alice or tenant:acme, are kept',
      default: {},
    }),
  ),
  webhooks: section({
    secrets: setting(
      { env: 'RIVULET_WEBHOOK_SECRET', secret: 'text', worker: true },
      secrets(
        `master secrets of webhooks, ${minSecretLength} characters or more, the newest first, comma-separated; none sends none`,
      ),
    ),
  }),
  log: section({
    level: setting(
      { flag: '--log-level <level>', env: 'LOG_LEVEL', worker: true },
      oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'silent'], 'info', 'minimum level of log lines'),
    ),
    format: setting(
      { flag: '--log-format <format>', env: 'RIVULET_LOG_FORMAT', worker: true },
      oneOf(['auto', 'pretty', 'json'], 'auto', 'lines to read, or lines of JSON; auto: pretty on a terminal'),
    ),
  }),
  metrics: section({
    port: setting(
      { flag: '--metrics-port <port>', env: 'RIVULET_METRICS_PORT', worker: true },
      Type.Optional(
        Type.Integer({ minimum: 0, maximum: 65_535, description: 'serve /metrics, /health and /ready at this port' }),
      ),
    ),
    host: setting(
      { flag: '--metrics-host <host>', env: 'RIVULET_METRICS_HOST', worker: true },
      address('address of the metrics port', '127.0.0.1'),
    ),
  }),
  /** `--limit name=value` sets each; see `resolve-settings.ts`. */
  limits: section({
    ...Limits.properties,
    ...HttpLimits.properties,
    ...ConnectionLimits.properties,
    // A server inside of another program shares its event loop and its heap, so these are off there.
    overloadDelay: withDefault(500, HttpLimits.properties.overloadDelay),
    overloadHeap: withDefault(90, HttpLimits.properties.overloadHeap),
    stalledAfter: setting(
      { flag: '--stalled-after <ms>', env: 'RIVULET_STALLED_AFTER' },
      HttpLimits.properties.stalledAfter,
    ),
  }),
});
export type Settings = Static<typeof Settings>;

export interface Row {
  /** The keys that lead to it in a file, such as `['log', 'level']`. */
  readonly path: readonly string[];
  readonly schema: TSchema;
  readonly names: Names;
}

/** Every setting, in the order of the schema. */
export function rows(schema: TSchema = Settings, path: readonly string[] = []): Row[] {
  if (!KindGuard.IsObject(schema)) return [{ path, schema, names: schema.names ?? {} }];
  return Object.entries(schema.properties).flatMap(([key, property]) => rows(property, [...path, key]));
}

/** The value at a path of settings, also of ones that are not checked yet. */
export const valueAt = (settings: unknown, path: readonly string[]): unknown =>
  path.reduce((inner, key) => (isObject(inner) ? inner[key] : undefined), settings);

/** The JSON Schema of a configuration file, for editors. No key is required, because each has a default. */
export const fileSchema = (): string =>
  JSON.stringify(
    { $schema: 'http://json-schema.org/draft-07/schema#', title: 'Configuration of Rivulet', ...Settings },
    (key, value) => (key === 'required' || key === 'names' ? undefined : value),
    2,
  );
