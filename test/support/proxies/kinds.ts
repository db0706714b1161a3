import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { ProxyKind, ProxyPlace } from './proxy.ts';

const example = resolve(import.meta.dirname, '../../../examples/deploy/nginx.conf');

/** The example of the project, with these addresses. */
function nginxConf({ port, tlsPort, nodes, cert, key, folder }: ProxyPlace): string {
  const [first, second] = nodes;
  return readFileSync(example, 'utf8')
    .replace(
      'listen 8080;',
      `listen 127.0.0.1:${port};\n    listen 127.0.0.1:${tlsPort} ssl http2;\n    ssl_certificate ${cert};\n    ssl_certificate_key ${key};`,
    )
    .replace('node1:8000', `127.0.0.1:${first}`)
    .replace('node2:8000', `127.0.0.1:${second}`)
    .replace(/^.*node3:8000.*\n/m, '')
    .replace('http {', `http {\n  client_body_temp_path ${folder}/work/body;\n  proxy_temp_path ${folder}/work/proxy;`);
}

const nginx: ProxyKind = {
  name: 'nginx',
  package: 'nginx-light',
  version: ['nginx', '-v'],
  http2: true,
  plain: true,
  files: (place) => ({ 'nginx.conf': nginxConf(place) }),
  command: ({ folder }) => [
    'nginx',
    ...['-p', folder, '-c', 'nginx.conf', '-e', 'stderr', '-g', `daemon off; pid ${folder}/pid;`],
  ],
};

const haproxy: ProxyKind = {
  name: 'HAProxy',
  package: 'haproxy',
  version: ['haproxy', '-v'],
  http2: true,
  plain: true,
  files: ({ port, tlsPort, nodes: [first, second], pem }) => ({
    'haproxy.cfg': `
defaults
  mode http
  timeout connect 2s
  timeout client 1h
  timeout server 1h
  option http-no-delay
  option abortonclose
  option redispatch
  retries 2
frontend web
  bind 127.0.0.1:${port}
  bind 127.0.0.1:${tlsPort} ssl crt ${pem} alpn h2,http/1.1
  default_backend nodes
backend nodes
  balance leastconn
  option forwardfor
  server a 127.0.0.1:${first} check inter 500
  server b 127.0.0.1:${second} check inter 500
`,
  }),
  command: () => ['haproxy', '-db', '-f', 'haproxy.cfg'],
};

const modules = [
  ...['mpm_event', 'authz_core', 'proxy', 'proxy_http', 'proxy_balancer'],
  ...['slotmem_shm', 'lbmethod_byrequests', 'http2', 'ssl', 'socache_shmcb'],
];
const apache: ProxyKind = {
  name: 'Apache',
  package: 'apache2',
  version: ['apache2', '-v'],
  http2: true,
  plain: true,
  files: ({ port, tlsPort, nodes, cert, key, folder }) => ({
    'apache.conf': `
ServerRoot ${folder}
ServerName 127.0.0.1
PidFile ${folder}/pid
DefaultRuntimeDir ${folder}/work
${modules.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`).join('\n')}
User www-data
Group www-data
ErrorLog ${folder}/work/errors
LogLevel error
Listen 127.0.0.1:${port}
Listen 127.0.0.1:${tlsPort}
Protocols h2 http/1.1
ProxyPreserveHost On
ProxyTimeout 3600
<Proxy balancer://nodes>
${nodes.map((node) => `  BalancerMember http://127.0.0.1:${node} retry=1 timeout=3600 flushpackets=on`).join('\n')}
</Proxy>
ProxyPass / balancer://nodes/
<VirtualHost 127.0.0.1:${tlsPort}>
  SSLEngine on
  SSLCertificateFile ${cert}
  SSLCertificateKeyFile ${key}
  ProxyPass / balancer://nodes/
</VirtualHost>
`,
  }),
  command: ({ folder }) => ['apache2', '-DFOREGROUND', '-f', `${folder}/apache.conf`],
};

const caddy: ProxyKind = {
  name: 'Caddy',
  package: 'caddy',
  version: ['caddy', 'version'],
  http2: true,
  plain: true,
  files: ({ port, tlsPort, nodes: [first, second], cert, key }) => ({
    Caddyfile: `
{
  admin off
  auto_https off
}
(nodes) {
  reverse_proxy 127.0.0.1:${first} 127.0.0.1:${second} {
    lb_policy least_conn
    lb_try_duration 2s
    fail_duration 5s
  }
}
http://127.0.0.1:${port} {
  import nodes
}
https://127.0.0.1:${tlsPort} {
  tls ${cert} ${key}
  import nodes
}
`,
  }),
  command: () => ['caddy', 'run', '--config', 'Caddyfile', '--adapter', 'caddyfile'],
};

const lighttpd: ProxyKind = {
  name: 'lighttpd',
  package: 'lighttpd',
  version: ['lighttpd', '-v'],
  http2: true,
  plain: true,
  files: ({ port, tlsPort, nodes, pem, folder }) => ({
    'lighttpd.conf': `
server.modules = ("mod_proxy", "mod_openssl")
server.document-root = "${folder}/work"
server.upload-dirs = ("${folder}/work")
server.bind = "127.0.0.1"
server.port = ${port}
server.stream-response-body = 2
server.max-request-size = 10240
$SERVER["socket"] == "127.0.0.1:${tlsPort}" {
  ssl.engine = "enable"
  ssl.pemfile = "${pem}"
}
proxy.balance = "least-connection"
proxy.server = ("" => (${nodes.map((node) => `("host" => "127.0.0.1", "port" => ${node})`).join(', ')}))
`,
  }),
  command: () => ['lighttpd', '-D', '-f', 'lighttpd.conf'],
};

const vcl = ([first, second]: readonly [number, number]): string => `
vcl 4.1;
import directors;
${[first, second]
  .map(
    (port, index) => `backend n${index} {
  .host = "127.0.0.1";
  .port = "${port}";
  .connect_timeout = 2s;
  .first_byte_timeout = 1h;
  .between_bytes_timeout = 60s;
}`,
  )
  .join('\n')}
sub vcl_init {
  new nodes = directors.round_robin();
  nodes.add_backend(n0);
  nodes.add_backend(n1);
}
sub vcl_recv {
  set req.backend_hint = nodes.backend();
}
`;

const varnish: ProxyKind = {
  name: 'Varnish',
  package: 'varnish',
  version: ['varnishd', '-V'],
  http2: false,
  plain: true,
  files: ({ nodes }) => ({ 'rivulet.vcl': vcl(nodes) }),
  command: ({ folder, port }) => [
    'varnishd',
    ...['-F', '-a', `127.0.0.1:${port}`, '-f', `${folder}/rivulet.vcl`, '-n', `${folder}/work/varnish`, '-T', 'none'],
  ],
};

const h2o: ProxyKind = {
  name: 'h2o',
  package: 'h2o',
  version: ['h2o', '-v'],
  http2: true,
  plain: true,
  files: ({ port, tlsPort, nodes: [first], cert, key, folder }) => ({
    'h2o.conf': `
user: root
pid-file: ${folder}/pid
error-log: ${folder}/work/errors
temp-buffer-path: ${folder}/work
listen:
  host: 127.0.0.1
  port: ${port}
listen:
  host: 127.0.0.1
  port: ${tlsPort}
  ssl:
    certificate-file: ${cert}
    key-file: ${key}
proxy.preserve-host: ON
proxy.timeout.io: 3600000
hosts:
  default:
    paths:
      "/":
        proxy.reverse.url: "http://127.0.0.1:${first}/"
`,
  }),
  command: () => ['h2o', '-m', 'worker', '-c', 'h2o.conf'],
};

const nghttpx: ProxyKind = {
  name: 'nghttpx',
  package: 'nghttp2-proxy',
  version: ['nghttpx', '--version'],
  http2: true,
  plain: true,
  files: ({ port, tlsPort, nodes, cert, key, folder }) => ({
    'nghttpx.conf': `
frontend=127.0.0.1,${port};no-tls
frontend=127.0.0.1,${tlsPort}
${nodes.map((node) => `backend=127.0.0.1,${node}`).join('\n')}
private-key-file=${key}
certificate-file=${cert}
no-host-rewrite=yes
add-x-forwarded-for=yes
backend-read-timeout=1h
backend-connect-timeout=2s
frontend-read-timeout=1h
frontend-http2-read-timeout=1h
stream-read-timeout=0
stream-write-timeout=0
errorlog-file=${folder}/work/errors
accesslog-file=/dev/null
workers=1
`,
  }),
  command: ({ folder }) => ['nghttpx', `--conf=${folder}/nghttpx.conf`],
};

const squid: ProxyKind = {
  name: 'Squid',
  package: 'squid',
  version: ['squid', '-v'],
  http2: false,
  plain: true,
  files: ({ port, nodes: [first, second], folder }) => ({
    'squid.conf': `
http_port 127.0.0.1:${port} accel vhost defaultsite=127.0.0.1
cache_peer 127.0.0.1 parent ${first} 0 no-query originserver round-robin name=a
cache_peer 127.0.0.1 parent ${second} 0 no-query originserver round-robin name=b
http_access allow all
cache deny all
read_timeout 1 hour
request_timeout 1 hour
client_lifetime 1 day
half_closed_clients off
quick_abort_min 0 KB
quick_abort_max 0 KB
access_log none
cache_log ${folder}/work/errors
pid_filename ${folder}/work/pid
coredump_dir ${folder}/work
shutdown_lifetime 0 seconds
pinger_enable off
visible_hostname proxy.test
`,
  }),
  command: ({ folder }) => ['squid', '-N', '-f', `${folder}/squid.conf`],
};

const hitch: ProxyKind = {
  name: 'hitch',
  package: 'hitch',
  version: ['hitch', '--version'],
  http2: false,
  plain: false,
  files: ({ tlsPort, nodes: [first], pem }) => ({
    'hitch.conf': `
frontend = "[127.0.0.1]:${tlsPort}"
backend = "[127.0.0.1]:${first}"
pem-file = "${pem}"
alpn-protos = "http/1.1"
workers = 1
daemon = off
user = "www-data"
`,
  }),
  command: ({ folder }) => ['hitch', `--config=${folder}/hitch.conf`],
};

/** All from Debian 12, with the settings that Rivulet needs: docs/scaling.md names them. */
export const proxyKinds: readonly ProxyKind[] = [
  ...[nginx, haproxy, apache, caddy, lighttpd, varnish, h2o, nghttpx, squid, hitch],
];
