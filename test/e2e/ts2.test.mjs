// The official TypeScript client 2.x, pinned to 2026-07-28: server/discover,
// input_required results that the client answers by itself and calls again, and
// changes over subscriptions/listen.

import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { define } from './harness.mjs';

define({
  wanted: '2026-07-28',
  version: client => client.getNegotiatedProtocolVersion(),
  callTool: (client, params, options) => client.callTool(params, options),
  async connect(server, person, canAsk) {
    const client = new Client({ name: 'e2e', version: '1.2' }, {
      capabilities: canAsk ? { elicitation: { form: {} } } : {},
      versionNegotiation: { mode: { pin: '2026-07-28' } },
      listChanged: person.listChanged,
    });
    if (canAsk) client.setRequestHandler('elicitation/create', person.elicited);
    await client.connect(new StdioClientTransport(server));
    return client;
  },
});
