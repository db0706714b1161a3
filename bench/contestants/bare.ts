/** The upper limit: node:http, with one write a token, or one write a tick (`tick`). Without log and resume. */
import { createServer } from 'node:http';
import { emit, readAsked, report } from './tokens.ts';

const perTick = process.argv[2] === 'tick';

const server = createServer((request, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  let id = 0;
  let pending = '';
  const flush = (): void => {
    if (pending !== '') response.write(pending);
    pending = '';
  };
  emit(
    readAsked(request.url?.slice(1) ?? ''),
    (content) => {
      const frame = `id: ${++id}\ndata: ${JSON.stringify({ type: 'message.part', part: { content_type: 'text/plain', content } })}\n\n`;
      if (!perTick) return void response.write(frame);
      if (pending === '') setImmediate(flush);
      pending += frame;
    },
    () => {
      flush();
      response.end();
    },
  );
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  report(typeof address === 'object' && address !== null ? address.port : 0);
});
