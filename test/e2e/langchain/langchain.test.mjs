// LangChain.js: an agent graph that has the server's tools through
// @langchain/mcp-adapters, over each of its transports, and a chat model that plays
// a script. The adapters have no way to show questions, so a person answers in a
// terminal, unless the program makes the client itself; and they list tools once, so
// those of a pack are reached through call_tool.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';

import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessage } from '@langchain/core/messages';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { loadMcpTools, MultiServerMCPClient } from '@langchain/mcp-adapters';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

import { Terminal, World } from '../world.mjs';

// ScriptedModel is a chat model that does what a script says: play i answers
// the conversation that has i results of tools.
class ScriptedModel extends BaseChatModel {
  constructor(script, tools = []) {
    super({});
    this.script = script;
    this.tools = tools;
  }

  _llmType() {
    return 'scripted';
  }

  bindTools(tools) {
    return new ScriptedModel(this.script, tools);
  }

  async _generate(messages) {
    const results = messages.filter(m => m.getType() === 'tool').map(m => ({ text: textOf(m), links: linksOf(m), failed: m.status === 'error' }));
    const play = this.script[results.length];
    assert.ok(play, `the graph asks for turn ${results.length + 1}, and the script is over`);
    const next = play({ tools: this.tools, last: results.at(-1), text: messages.map(textOf).join('\n') });
    const message = typeof next === 'string' ? new AIMessage(next)
      : new AIMessage({ content: '', tool_calls: [{ id: `call_${results.length}`, name: next.tool, args: next.args, type: 'tool_call' }] });
    return { generations: [{ text: '', message }] };
  }
}

const textOf = message => typeof message.content === 'string' ? message.content : message.content.map(part => part.text ?? '').join('\n');

// linksOf are the addresses in a message: the adapters make a file of each link in
// a result.
const linksOf = message => Array.isArray(message.content) ? message.content.filter(part => part.type === 'file').map(part => part.url) : [];

// payload is what a tool answered. The adapters give the model the text and the
// structured content, side by side, or the text alone when there are links.
function payload({ text }) {
  const out = JSON.parse(text);
  if (out.type !== 'text') return out;
  assert.deepEqual(JSON.parse(out.text), out.structuredContent);
  return out.structuredContent;
}

// withoutLinks keeps links from the model: as files, providers of models would try
// to fetch them.
const withoutLinks = ({ result: [content, artifacts] }) => ({ result: [Array.isArray(content) ? content.filter(part => part.type !== 'file') : content, artifacts] });

const token = 'a-token-of-this-test-only';

// reach starts a server where it is not the client that does, and returns what
// the adapters are told of it.
async function reach(world, transport) {
  if (transport === 'stdio') {
    const { command, args, env, cwd } = world.server;
    return { config: { transport, command, args, env, cwd }, stop: () => {} };
  }
  const { base, headers, stop } = await world.listen(token);
  return { config: { transport, url: base + (transport === 'sse' ? '/sse' : '/mcp'), headers, automaticSSEFallback: false }, stop };
}

// converse has a graph talk until its model has only words left.
async function converse(t, transport, command, script, hooks = {}) {
  const world = new World(t);
  world.env.PACKS_MCP_APPROVAL_CHANNELS = 'terminal';
  const { config, stop } = await reach(world, transport);
  const client = new MultiServerMCPClient({ mcpServers: { packs: config }, ...hooks });
  t.after(() => client.close());
  const graph = createReactAgent({ llm: new ScriptedModel(script), tools: await client.getTools() });
  const terminal = new Terminal(world, command);
  try {
    const { messages } = await graph.invoke({ messages: [{ role: 'user', content: 'Write down that it rains.' }] });
    assert.equal(textOf(messages.at(-1)), 'Done.');
  } finally {
    await terminal.leave();
    await client.close();
  }
  await stop();
  return { world, answered: terminal.answered };
}

const pack = 'field-notes';
const decisions = world => world.entries().filter(e => e.decision && e.kind !== 'list').map(e => `${e.kind} ${e.decision} ${e.channel}`);

for (const transport of ['stdio', 'http', 'sse']) {
  describe(transport, { concurrency: true }, () => {
    test('a graph discovers packs, opens one and calls its tool', { timeout: 60_000 }, async t => {
      const offered = [
        'capability_packs_call_tool', 'capability_packs_enable_tools', 'capability_packs_exec_best_effort',
        'capability_packs_list', 'capability_packs_open_docs', 'capability_packs_read_file',
      ];
      const { world, answered } = await converse(t, transport, 'approve', [
        ({ tools }) => {
          assert.deepEqual(tools.map(tool => tool.name).sort(), offered);
          const list = tools.find(tool => tool.name === 'capability_packs_list');
          assert.match(list.description, /- pack_id: field-notes\n {2}description: Keep short notes/);
          return { tool: 'capability_packs_list', args: { query: 'observation' } };
        },
        ({ last }) => {
          assert.deepEqual(payload(last).packs.map(p => p.pack_id), [pack]);
          return { tool: 'capability_packs_open_docs', args: { pack_id: pack } };
        },
        ({ last }) => {
          assert.match(payload(last).entry_doc.content, /^# Field notes\n/);
          return { tool: 'capability_packs_enable_tools', args: { pack_id: pack, tools: ['note'] } };
        },
        ({ last, tools }) => {
          assert.deepEqual(payload(last).tools.map(tool => tool.tool), ['note']);
          assert.deepEqual(tools.map(tool => tool.name).sort(), offered, 'the adapters list the tools once');
          return { tool: 'capability_packs_call_tool', args: { pack_id: pack, tool: 'note', arguments: { file: 'first', text: 'rain', stars: 5 } } };
        },
        ({ last }) => {
          const { ok, parsed, workspace } = payload(last);
          assert.deepEqual({ ok, parsed }, { ok: true, parsed: { file: 'first', stars: 5 } });
          assert.deepEqual(last.links, transport === 'http' ? [`workspace://${workspace}/notes/first.txt`] : []);
          return 'Done.';
        },
      ], { stdio: { afterToolCall: withoutLinks }, sse: { outputHandling: { resource_link: 'artifact' } } }[transport]);
      // As artifacts, the adapters read what links lead to, at once.
      const reads = transport === 'sse';
      assert.deepEqual(answered, [
        'Open the documents of pack field-notes?', 'Enable 1 tool of pack field-notes?', 'Run tool note of pack field-notes?',
        ...reads ? ['Read notes/first.txt from the workspace?'] : [],
      ]);
      assert.equal(fs.readFileSync(path.join(world.workspace, 'notes', 'first.txt'), 'utf8'), 'rain\n5 stars\n');
      assert.deepEqual(decisions(world), ['open once terminal', 'enable once terminal', 'run once terminal', ...reads ? ['read once terminal'] : []]);
    });

    test('a denial reaches the model', { timeout: 60_000 }, async t => {
      const { world, answered } = await converse(t, transport, 'deny', [
        () => ({ tool: 'capability_packs_open_docs', args: { pack_id: pack } }),
        ({ last }) => {
          assert.ok(last.failed);
          assert.match(last.text, /"code":\s*"denied"/);
          return 'Done.';
        },
      ]);
      assert.deepEqual(answered, ['Open the documents of pack field-notes?']);
      assert.deepEqual(decisions(world), ['open deny terminal']);
    });

    if (transport !== 'stdio') {
      test('another token', { timeout: 60_000 }, async t => {
        const world = new World(t);
        const { config, stop } = await reach(world, transport);
        const client = new MultiServerMCPClient({ mcpServers: { packs: { ...config, headers: { authorization: 'Bearer not-the-token' } } } });
        t.after(() => client.close());
        await assert.rejects(client.getTools(), /401|authentication/i);
        await stop();
      });
    }
  });
}

// The adapters take the tools of a client that the program made, which shows the
// questions itself.
test('a program that asks', { timeout: 60_000 }, async t => {
  const world = new World(t);
  const client = new Client({ name: 'e2e', version: '1.2' }, { capabilities: { elicitation: { form: {} } } });
  t.after(() => client.close());
  const asked = [];
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
    asked.push(params.message.split('\n', 1)[0]);
    return { action: 'accept', content: { decision: 'once' } };
  });
  await client.connect(new StdioClientTransport(world.server));
  const graph = createReactAgent({ tools: await loadMcpTools('packs', client), llm: new ScriptedModel([
    () => ({ tool: 'capability_packs_open_docs', args: { pack_id: pack } }),
    ({ last }) => {
      assert.match(payload(last).entry_doc.content, /^# Field notes\n/);
      return 'Done.';
    },
  ]) });
  const { messages } = await graph.invoke({ messages: [{ role: 'user', content: 'What is in the pack?' }] });
  assert.equal(textOf(messages.at(-1)), 'Done.');
  assert.deepEqual(asked, ['Open the documents of pack field-notes?']);
  await client.close();
  assert.deepEqual(decisions(world), ['open once elicitation']);
});

// specs/skillkit.md, FR-029 to FR-037: with expose: skills, the adapters make a tool
// with one text of each pack, and a graph that calls it gets the document.
test('packs as tools', { timeout: 60_000 }, async t => {
  const world = new World(t);
  world.env.PACKS_MCP_EXPOSE = 'skills';
  const client = new Client({ name: 'e2e', version: '1.2' }, { capabilities: { elicitation: { form: {} } } });
  t.after(() => client.close());
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { decision: 'once' } }));
  await client.connect(new StdioClientTransport(world.server));
  const tools = await loadMcpTools('packs', client);
  const skill = tools.find(tool => tool.name === pack);
  assert.match(skill.description, /^Keep short notes/);
  assert.deepEqual(Object.entries(skill.schema.properties).map(([name, { type }]) => [name, type]), [['arguments', 'string']]);
  const graph = createReactAgent({ tools, llm: new ScriptedModel([
    () => ({ tool: pack, args: { arguments: 'analyze code.py' } }),
    ({ last }) => {
      assert.match(payload(last).entry_doc.content, /^Base directory for this skill: .*field-notes\n\n# Field notes\n[^]*\n\nARGUMENTS: analyze code\.py\n\nTools of this pack, after capability_packs_enable_tools\(pack_id: "field-notes"\): note, fail, hold$/);
      return 'Done.';
    },
  ]) });
  const { messages } = await graph.invoke({ messages: [{ role: 'user', content: 'Look at code.py.' }] });
  assert.equal(textOf(messages.at(-1)), 'Done.');
  await client.close();
  assert.deepEqual(decisions(world), ['open once elicitation']);
});
