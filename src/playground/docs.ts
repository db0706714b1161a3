// The file for browsers, which has its own Vue. The package's entry for Node is a Fastify plugin with an inline script,
// which the policy of our pages refuses.
import '../../node_modules/@scalar/fastify-api-reference/dist/js/standalone.js';

declare const Scalar: { createApiReference(element: string, options: object): void };

// Without these options, the page would load fonts, and offer services, from other servers.
Scalar.createApiReference('#app', {
  url: 'openapi.json',
  metaData: { title: 'Rivulet API' },
  withDefaultFonts: false,
  telemetry: false,
  proxyUrl: '',
  agent: { disabled: true },
  mcp: { disabled: true },
  hideClientButton: true,
  defaultOpenAllTags: true,
  showDeveloperTools: 'never',
  defaultHttpClient: { targetKey: 'shell', clientKey: 'curl' },
});
