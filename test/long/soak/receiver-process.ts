import { appendFileSync, fsyncSync, openSync } from 'node:fs';
import { createServer } from 'node:http';

// A receiver of webhooks that may be killed at any moment. It writes each webhook to a file before it answers: so what it
// has answered is in the file.
const [file = '', port = '0'] = process.argv.slice(2);
const fd = openSync(file, 'a');

const server = createServer(async (request, response) => {
  let body = '';
  for await (const chunk of request) body += chunk;
  appendFileSync(fd, `${JSON.stringify({ headers: request.headers, body })}\n`);
  fsyncSync(fd);
  response.writeHead(204).end();
});
server.listen(Number(port), '127.0.0.1', () => process.stdout.write('ready\n'));
