import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { toolServer } from './mcp-server.ts';

serveStdio(() => toolServer());
