/** Requests of the modern era of MCP, as its clients send them. */
export const version = '2026-07-28';

export const metaOf = (capabilities: object = { elicitation: {} }, more: object = {}) => ({
  'io.modelcontextprotocol/protocolVersion': version,
  'io.modelcontextprotocol/clientCapabilities': capabilities,
  ...more,
});

export const request = (method: string, params: object = {}, id: unknown = 1): Record<string, unknown> => ({
  jsonrpc: '2.0',
  id,
  method,
  params,
});

/** The headers that such a request needs; `name` is that of what it is about. */
export const headersOf = (method: string, name?: unknown): Record<string, string> => ({
  'mcp-protocol-version': version,
  'mcp-method': method,
  ...(typeof name === 'string' && { 'mcp-name': name }),
});
