// The official TypeScript SDK 1.x, which speaks 2025-11-25: initialize, and
// elicitation/create while a call waits. Over HTTP it has sessions.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema, ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

import { define, reach } from './harness.mjs';

const transports = { StdioClientTransport, StreamableHTTPClientTransport, SSEClientTransport };

define('TypeScript 1.x', ['stdio', 'http', 'sse'].map(over => ({
  over,
  wanted: '2025-11-25',
  progress: true,
  version: client => client.transport.agreed,
  callTool: (client, params, options) => client.callTool(params, CallToolResultSchema, options),
  status: error => error.code ?? Number(/HTTP (\d+)/.exec(error.message)?.[1]),
  async connect(at, person, canAsk) {
    const capabilities = canAsk ? { elicitation: { form: {} } } : {};
    const client = new Client({ name: 'e2e', version: '1.2' }, { capabilities, listChanged: person.listChanged });
    if (canAsk) client.setRequestHandler(ElicitRequestSchema, person.elicited);
    const transport = reach(at, transports);
    const set = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = version => {
      transport.agreed = version;
      set?.(version);
    };
    await client.connect(transport);
    return client;
  },
})));
