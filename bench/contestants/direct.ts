import { createServer } from 'node:http';
import { emit, readWork, report } from './tokens.ts';
const server = createServer((request, response) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.flushHeaders();
  const socket = response.socket!;
  let id = 0;
  emit(
    readWork((request.url ?? '').slice(1)),
    (content) => {
      const text = `id: ${++id}\ndata: {"type":"message.part","part":{"content_type":"text/plain","content":${JSON.stringify(content)}}}\n\n`;
      socket.write(`${text.length.toString(16)}\r\n${text}\r\n`, 'latin1');
    },
    () => response.end(),
  );
});
server.listen(0, '127.0.0.1', () => report((server.address() as { port: number }).port));
