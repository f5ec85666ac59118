// The official TypeScript SDK 1.x, which speaks 2025-11-25: initialize, and
// elicitation/create while a call waits.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { CallToolResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

import { define } from './harness.mjs';

define({
  wanted: '2025-11-25',
  version: client => client.transport.agreed,
  callTool: (client, params, options) => client.callTool(params, CallToolResultSchema, options),
  async connect(server, person, canAsk) {
    const capabilities = canAsk ? { elicitation: { form: {} } } : {};
    const client = new Client({ name: 'e2e', version: '1.2' }, { capabilities, listChanged: person.listChanged });
    if (canAsk) client.setRequestHandler(ElicitRequestSchema, person.elicited);
    const transport = new StdioClientTransport(server);
    transport.setProtocolVersion = version => { transport.agreed = version; };
    await client.connect(transport);
    return client;
  },
});
