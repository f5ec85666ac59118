// LangChain.js: an agent graph that has the server's tools through
// @langchain/mcp-adapters, and a chat model that plays a script. The client
// cannot show questions, so a person answers in a terminal; and it lists tools
// once, so those of a pack are reached through call_tool.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';

import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessage } from '@langchain/core/messages';
import { createReactAgent } from '@langchain/langgraph/prebuilt';
import { MultiServerMCPClient } from '@langchain/mcp-adapters';

import { World } from '../harness.mjs';

const run = promisify(execFile);

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
    const results = messages.filter(m => m.getType() === 'tool').map(m => ({ text: textOf(m), failed: m.status === 'error' }));
    const play = this.script[results.length];
    assert.ok(play, `the graph asks for turn ${results.length + 1}, and the script is over`);
    const next = play({ tools: this.tools, last: results.at(-1), text: messages.map(textOf).join('\n') });
    const message = typeof next === 'string' ? new AIMessage(next)
      : new AIMessage({ content: '', tool_calls: [{ id: `call_${results.length}`, name: next.tool, args: next.args, type: 'tool_call' }] });
    return { generations: [{ text: '', message }] };
  }
}

const textOf = message => typeof message.content === 'string' ? message.content : message.content.map(part => part.text ?? '').join('\n');

// payload is what a tool answered. The adapters give the model the text and the
// structured content, side by side.
function payload({ text }) {
  const { structuredContent, text: inner } = JSON.parse(text);
  assert.deepEqual(JSON.parse(inner), structuredContent);
  return structuredContent;
}

// A Terminal is a person who answers every call that waits, with this command.
class Terminal {
  answered = [];
  #over = new AbortController();

  constructor(world, command) {
    this.done = this.#answer(world, command);
  }

  async #answer(world, command) {
    const options = { env: world.env, cwd: world.root, encoding: 'utf8' };
    const program = world.server.command;
    while (!this.#over.signal.aborted) {
      const { stdout } = await run(program, ['approvals', 'list', '--json'], options).catch(() => ({ stdout: '{"pending": []}' })); // no server yet
      for (const { code, title, answered } of JSON.parse(stdout).pending) {
        if (answered !== '') continue;
        await run(program, ['approvals', command, code, ...(command === 'approve' ? ['--yes'] : [])], options);
        this.answered.push(title);
      }
      await pause(100, undefined, { signal: this.#over.signal }).catch(() => {});
    }
  }

  async leave() {
    this.#over.abort();
    await this.done;
  }
}

// converse has a graph talk until its model has only words left.
async function converse(t, command, script) {
  const world = new World(t);
  world.env.PACKS_MCP_APPROVAL_CHANNELS = 'terminal';
  const { command: program, args, env, cwd } = world.server;
  const client = new MultiServerMCPClient({ mcpServers: { packs: { transport: 'stdio', command: program, args, env, cwd } } });
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
  return { world, answered: terminal.answered };
}

const pack = 'field-notes';
const decisions = world => world.entries().filter(e => e.decision && e.kind !== 'list').map(e => `${e.kind} ${e.decision} ${e.channel}`);

test('a graph discovers packs, opens one and calls its tool', { timeout: 60_000 }, async t => {
  const offered = [
    'capability_packs_call_tool', 'capability_packs_enable_tools', 'capability_packs_exec_best_effort',
    'capability_packs_list', 'capability_packs_open_docs', 'capability_packs_read_file',
  ];
  const { world, answered } = await converse(t, 'approve', [
    ({ tools }) => {
      assert.deepEqual(tools.map(tool => tool.name).sort(), offered);
      const list = tools.find(tool => tool.name === 'capability_packs_list');
      assert.match(list.description, /- pack_id: field-notes\n {2}name: field-notes\n {2}description: Keep short notes/);
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
      const { ok, parsed } = payload(last);
      assert.deepEqual({ ok, parsed }, { ok: true, parsed: { file: 'first', stars: 5 } });
      return 'Done.';
    },
  ]);
  assert.deepEqual(answered, ['Open the documents of pack field-notes?', 'Enable 1 tool of pack field-notes?', 'Run tool note of pack field-notes?']);
  assert.equal(fs.readFileSync(path.join(world.workspace, 'notes', 'first.txt'), 'utf8'), 'rain\n5 stars\n');
  assert.deepEqual(decisions(world), ['open once terminal', 'enable once terminal', 'run once terminal']);
});

test('a denial reaches the model', { timeout: 60_000 }, async t => {
  const { world, answered } = await converse(t, 'deny', [
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
