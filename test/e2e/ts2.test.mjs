// The official TypeScript client 2.x. Pinned to 2026-07-28: server/discover,
// input_required results that the client answers by itself and calls again, and
// changes over subscriptions/listen. As it is by default: 2025-11-25.

import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { define, reach } from './harness.mjs';

const transports = { StdioClientTransport, StreamableHTTPClientTransport, SSEClientTransport };

define('TypeScript 2.x', [
  ['stdio', '2026-07-28', { pin: '2026-07-28' }],
  ['http', '2026-07-28', { pin: '2026-07-28' }],
  ['http', '2025-11-25', 'legacy'],
].map(([over, wanted, mode]) => ({
  over,
  wanted,
  progress: mode !== 'legacy',
  version: client => client.getNegotiatedProtocolVersion(),
  callTool: (client, params, options) => client.callTool(params, options),
  status: error => error.status,
  async connect(at, person, canAsk) {
    const client = new Client({ name: 'e2e', version: '1.2' }, {
      capabilities: canAsk ? { elicitation: { form: {} } } : {},
      versionNegotiation: { mode },
      listChanged: person.listChanged,
    });
    if (canAsk) client.setRequestHandler('elicitation/create', person.elicited);
    await client.connect(reach(at, transports));
    return client;
  },
})));
