// What the tests of both TypeScript clients share: the behaviour that must be the
// same whichever client is used, over whichever transport. How a client is made
// and what it is like is in ts1.test.mjs and ts2.test.mjs; what only HTTP has is
// in http.mjs.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';

import { web } from './http.mjs';
import { Terminal, within, World } from './world.mjs';

export const baseTools = [
  'capability_packs_call_tool', 'capability_packs_enable_tools', 'capability_packs_exec_best_effort',
  'capability_packs_list', 'capability_packs_open_docs', 'capability_packs_read_file',
];

const accept = decision => ({ action: 'accept', content: { decision } });

// Person answers questions, and keeps what was asked and which tool lists the
// client was told of.
class Person {
  answer = () => accept('once');
  asked = [];
  lists = [];
  problems = [];
  #waiting = [];

  elicited = request => {
    this.asked.push(request.params);
    return this.answer(request.params);
  };

  // listChanged is the client's option of that name: it lists again by itself.
  listChanged = {
    tools: {
      debounceMs: 0,
      onChanged: (error, tools) => {
        if (error) {
          this.problems.push(error);
          return;
        }
        this.lists.push(tools.map(tool => tool.name).sort());
        for (const resolve of this.#waiting.splice(0)) resolve();
      },
    },
  };

  async changed() {
    while (this.lists.length === 0) {
      await within(new Promise(resolve => this.#waiting.push(resolve)), 'tools/list_changed');
    }
    return this.lists.shift();
  }

  // question is the one question since the last time: its title has these
  // words, and it shows these facts. Where lines are broken is the gate's own
  // affair.
  question(words, ...facts) {
    assert.equal(this.asked.length, 1, `${this.asked.length} questions were asked, want one: ${words}`);
    const [{ message, requestedSchema: schema }] = this.asked.splice(0);
    const title = message.split('\n\n', 2)[1].split('\n', 1)[0];
    for (const word of words.split(' ')) assert.ok(title.includes(word), `the question has the title ${title}, want ${word} in it`);
    const unbroken = text => text.replaceAll(/[ >\n]/g, '');
    for (const fact of facts) assert.ok(unbroken(message).includes(unbroken(fact)), `the question does not say ${fact}:\n${message}`);
    assert.equal(schema.type, 'object');
    assert.deepEqual(schema.required, ['decision']);
    assert.deepEqual(Object.keys(schema.properties), ['decision']);
    assert.equal(schema.properties.decision.type, 'string');
    assert.deepEqual(schema.properties.decision.enum, ['once', 'chat', 'always', 'deny']);
  }
}

// Session is a connected client and its person.
class Session {
  constructor(client, person, callTool, stop) {
    this.client = client;
    this.person = person;
    this.stop = stop;
    this.callTool = (params, options) => callTool(client, params, options);
    client.onerror = error => person.problems.push(error);
  }

  async names() {
    const { tools } = await this.client.listTools();
    return tools.map(tool => tool.name).sort();
  }

  // call makes a call and returns the result's JSON, which both its forms must
  // hold. The clients check it against the tool's output schema and throw.
  async call(name, args = {}, options) {
    const result = await this.callTool({ name, arguments: args }, options);
    const links = result.content.filter(part => part.type === 'resource_link');
    assert.deepEqual(result.content.filter(part => !links.includes(part)).map(part => JSON.parse(part.text)), [result.structuredContent]);
    for (const link of links) {
      assert.equal(link.uri, `workspace://${result.structuredContent.workspace}/${link.name}`);
      assert.ok(result.structuredContent.artifacts.some(artifact => artifact.path === link.name));
    }
    return { out: result.structuredContent, isError: result.isError ?? false };
  }

  async ok(name, args) {
    const { out, isError } = await this.call(name, args);
    assert.equal(isError, false, `${name}: ${JSON.stringify(out)}`);
    return out;
  }

  async refused(name, args) {
    const { out, isError } = await this.call(name, args);
    assert.equal(isError, true, `${name}: ${JSON.stringify(out)}`);
    assert.deepEqual(Object.keys(out), ['error']);
    return out.error;
  }

  // close ends the session, which nothing must have disturbed, and the server.
  async close() {
    assert.deepEqual(this.person.problems, []);
    await this.client.close(); // over HTTP clients report the streams that this breaks off
    await this.stop();
  }
}

// envelope compares a run's envelope, but for what differs from run to run.
function envelope({ workspace, sandbox, run_id, duration_ms, ...rest }, want) {
  assert.match(workspace, /^[0-9a-f]{32}$/);
  assert.ok(['none', 'partial', 'full'].includes(sandbox), sandbox);
  assert.ok(run_id && Number.isInteger(duration_ms));
  for (const set of rest.changes ?? []) {
    assert.ok(set.set);
    delete set.set;
  }
  assert.deepEqual(rest, want);
  return { workspace, sandbox };
}

// reach is how a client gets to a server that one of its transports starts or
// finds. The classes have the same names in both packages.
export function reach(at, { StdioClientTransport, StreamableHTTPClientTransport, SSEClientTransport }) {
  const options = { requestInit: { headers: at.headers }, fetch: at.fetch };
  switch (at.over) {
    case 'stdio': return new StdioClientTransport(at.server);
    case 'http': return new StreamableHTTPClientTransport(new URL(`${at.base}/mcp`), options);
    case 'sse': return new SSEClientTransport(new URL(`${at.base}/sse`), options);
  }
  throw new Error(`there is no transport ${at.over}`);
}

export const token = 'a-token-of-this-test-only';

// start connects a client to a server of its own: how is one way of define's.
export async function start(t, how, { canAsk = true, channels = 'elicitation' } = {}) {
  const world = new World(t);
  world.env.PACKS_MCP_APPROVAL_CHANNELS = channels;
  const at = { over: how.over, server: world.server };
  if (how.over !== 'stdio') {
    Object.assign(at, await world.listen(token));
    // Through this, a server that takes another's place is where that was.
    const first = at.base;
    at.fetch = (url, init) => fetch(String(url).replace(first, at.base), init);
  }
  return { world, at, ...await join(t, how, at, canAsk) };
}

// join connects another client, with a person of its own, to the same server.
export async function join(t, how, at, canAsk = true) {
  const person = new Person();
  const client = await how.connect({ ...at }, person, canAsk);
  t.after(() => client.close());
  assert.equal(how.version(client), how.wanted);
  return { person, session: new Session(client, person, how.callTool, () => at.stop?.()) };
}

// enabled is start, after the tools of the pack were enabled.
export async function enabled(t, how, more) {
  const s = await start(t, how, more);
  await s.session.names();
  await s.session.ok('capability_packs_enable_tools', { pack_id: 'field-notes' });
  await s.person.changed();
  await s.session.names();
  s.person.asked = [];
  return s;
}

// define declares the tests for a client, in each of these ways to use one, all
// beside each other: over is the transport, which reach makes of the first
// argument of connect(at, person, canAsk), a connected client; version(client) is
// what it agreed on, which must be wanted; callTool(client, params, options) calls
// its method of that name; status(error) is the HTTP status in one of its errors;
// progress is whether to wait for some, which takes 5 s in the older era.
export function define(name, ways) {
  describe(name, { concurrency: true }, () => {
    for (const how of ways) {
      describe(`${how.wanted} over ${how.over}`, { concurrency: 3 }, () => {
        common(how);
        if (how.over !== 'stdio') web(how);
      });
    }
  });
}

function common(how) {
  // The longest one is the first.
  test('a call tells how it goes on, and a cancelled one ends its program', async t => {
    const { world, session } = await enabled(t, how);
    const pipe = world.pipe();
    const abort = new AbortController();
    let onprogress;
    const told = new Promise(resolve => { onprogress = resolve; });
    const ended = assert.rejects(session.call('field-notes__hold', { pipe: pipe.name }, { signal: abort.signal, onprogress }));
    await pipe.holding;
    if (how.progress) {
      const { progress, message } = await within(told, 'progress');
      assert.equal(typeof progress, 'number');
      assert.match(message, /./);
    }
    abort.abort();
    await ended;
    await pipe.gone;
    assert.equal((await session.ok('capability_packs_list')).packs.length, 2);
    await session.close();
    const ends = world.entries().filter(e => e.event === 'run.end');
    assert.deepEqual(ends.map(e => e.cause), ['cancelled']);
  });

  test('the whole way', async t => {
    const { world, person, session } = await start(t, how);
    const pack = path.join(world.packs, 'field-notes');

    // Metadata.
    assert.match(session.client.getInstructions(), /^Capability Packs \(attached; metadata only\):\n- pack_id: field-notes\n {2}description: /m);
    assert.ok(session.client.getInstructions().length <= 2048);
    assert.equal(session.client.getServerVersion().name, 'packs-mcp');
    assert.equal(session.client.getServerCapabilities().tools.listChanged, true);
    assert.deepEqual(await session.names(), baseTools);
    const { packs } = await session.ok('capability_packs_list');
    assert.deepEqual(packs.map(p => [p.pack_id, p.has_tools_json]), [['field-notes', true], ['plain', false]]);
    assert.deepEqual(person.asked, []);

    // Open.
    assert.deepEqual(await session.ok('capability_packs_open_docs', { pack_id: 'field-notes' }), {
      folder: pack,
      entry_doc: { path: 'SKILL.md', content: '# Field notes\n\nRead `docs/guide.md`, then call the tool `note`.\n' },
    });
    person.question('Open documents field-notes', `pack: "${pack}"`, `asked by: a client that calls itself "e2e 1.2"`);

    // Read.
    assert.deepEqual(await session.ok('capability_packs_read_file', { pack_id: 'field-notes', path: 'resources/template.txt' }), {
      path: 'resources/template.txt', content: 'TITLE:\nTEXT:\n', encoding: 'utf-8', mime: 'text/plain', size_bytes: 13, truncated: false,
    });
    person.question('Read resources/template.txt field-notes');

    // Enable, list_changed, list again.
    assert.deepEqual(await session.ok('capability_packs_enable_tools', { pack_id: 'field-notes', tools: ['note', 'fail'] }), {
      enabled: true,
      tools: [
        {
          name: 'field-notes__note', tool: 'note', description: 'Write one note into the workspace.',
          signature: 'note(file: string, text: string, stars?: integer = 3)',
          input_schema: {
            type: 'object', required: ['file', 'text'], additionalProperties: false,
            properties: {
              file: { type: 'string', pattern: '^[a-z0-9-]+$', description: 'Name of the note.' },
              text: { type: 'string', minLength: 1 },
              stars: { type: 'integer', minimum: 1, maximum: 5, default: 3 },
            },
          },
        },
        { name: 'field-notes__fail', tool: 'fail', description: 'Complain and exit with 3.', signature: 'fail()' },
      ],
    });
    person.question('Enable 2 tools field-notes', 'note', 'fail');
    const all = [...baseTools, 'field-notes__fail', 'field-notes__note'];
    assert.deepEqual(await person.changed(), all);
    assert.deepEqual(await session.names(), all);

    // Run.
    const text = 'two words; $HOME "quoted"';
    const { workspace, sandbox } = envelope(await session.ok('field-notes__note', { file: 'first', text, stars: 5 }), {
      ok: true, exit_code: 0, truncated: false,
      stdout: '{"file": "first", "stars": 5}\n', stderr: '', parsed: { file: 'first', stars: 5 },
      changes: [{ folder: world.workspace, applied: ['notes', 'notes/first.txt'] }],
      artifacts: [{ path: 'notes/first.txt', file: path.join(world.workspace, 'notes', 'first.txt'), type: 'file', mime: 'text/plain', size_bytes: text.length + 9 }],
    });
    person.question('Run note field-notes',
      `program: "${path.join(pack, 'scripts', 'note.sh')}"`,
      'argument 1: "first"', 'argument 2: "two words; $HOME \\"quoted\\""', 'argument 3: "5"',
      `folder: "${world.workspace}"`, `sandbox: ${sandbox}`, 'The pack says of this tool: Write one note into the workspace.');

    // The artifact.
    assert.equal(fs.readFileSync(path.join(world.workspace, 'notes', 'first.txt'), 'utf8'), `${text}\n5 stars\n`);
    const made = await session.ok('capability_packs_read_file', { pack_id: 'workspace', path: 'notes/first.txt', workspace });
    assert.equal(made.content, `${text}\n5 stars\n`);
    person.question('Read notes/first.txt workspace');

    // The second road, and a program that fails.
    envelope(await session.ok('capability_packs_call_tool', { pack_id: 'field-notes', tool: 'note', arguments: { file: 'second', text: 'x' } }), {
      ok: true, exit_code: 0, truncated: false,
      stdout: '{"file": "second", "stars": 3}\n', stderr: '', parsed: { file: 'second', stars: 3 },
      changes: [{ folder: world.workspace, applied: ['notes/second.txt'] }],
      artifacts: [{ path: 'notes/second.txt', file: path.join(world.workspace, 'notes', 'second.txt'), type: 'file', mime: 'text/plain', size_bytes: 10 }],
    });
    person.question('Run note field-notes');
    const failed = await session.call('field-notes__fail');
    assert.equal(failed.isError, true);
    envelope(failed.out, { ok: false, exit_code: 3, truncated: false, stdout: 'half of it\n', stderr: 'no ink left\n',
      error: { code: 'command_failed', message: 'Command failed with exit code 3', hint: 'Read the output for the cause.' } });
    person.question('Run fail field-notes', 'arguments: none');
    assert.deepEqual(person.lists, [], 'the list changed once');

    // Audit.
    await session.close();
    const entries = world.entries();
    assert.deepEqual(entries.map(e => [e.event, e.kind, e.decision].filter(Boolean).join(' ')), [
      'server.start', 'decision list once', 'decision open once', 'decision read once', 'decision enable once',
      'decision run once', 'run.start run', 'run.end run', 'changes run', 'decision read once',
      'decision run once', 'run.start run', 'run.end run', 'changes run',
      'decision run once', 'run.start run', 'run.end run', 'server.stop',
    ]);
    const [decided, started, ended] = entries.slice(5, 8);
    assert.ok(started.run && decided.run === started.run && ended.run === started.run);
    assert.equal(decided.channel, 'elicitation');
    assert.equal(started.call_digest, decided.call_digest);
    assert.equal(started.sandbox, sandbox);
    assert.equal(started.client, 'e2e 1.2');
    assert.equal(ended.exit_code, 0);
    assert.deepEqual(ended.artifacts, ['notes/first.txt']);
  });

  const byItself = 'the client declined by itself, faster than a person can';
  const final = 'Do not call again unless the user asks for it; say what you wanted to do and why, or go on without it.';
  const nobody = 'Nobody decided this. Tell the user: their client does not let them answer, and the configuration has no other channel. ' +
    'With approval.channels: [elicitation, page, terminal] they can answer on a page or in a terminal.';
  const denials = [
    ['deny', accept('deny'), 'the person chose to deny', final],
    ['decline', { action: 'decline' }, byItself, nobody, 'the person declined'],
    ['cancel', { action: 'cancel' }, byItself, nobody, 'the question was closed without an answer'],
  ];
  for (const [name, answer, fast, unasked, slow] of how.over === 'stdio' ? denials : denials.slice(0, 1)) {
    test(`denied: ${name}`, async t => {
      const { world, person, session } = await enabled(t, how);
      person.answer = () => answer;
      const began = performance.now();
      const said = await session.refused('field-notes__note', { file: 'a', text: 'b' });
      // On a busy machine the answer may take as long as a person's would.
      const late = slow && performance.now() - began >= 1000 && said.message === slow;
      const reason = late ? slow : fast;
      assert.deepEqual(said, { code: 'denied', message: reason, hint: late ? final : unasked });
      assert.equal(person.asked.length, 1);
      await session.close();
      assert.deepEqual(fs.readdirSync(world.workspace), []);
      const last = world.entries().at(-2);
      assert.deepEqual([last.event, last.kind, last.decision, last.reason, last.run], ['decision', 'run', 'deny', reason, undefined]);
    });
  }

  test('a client that cannot ask', async t => {
    const { world, session } = await start(t, how, { canAsk: false });
    await session.names();
    assert.equal((await session.ok('capability_packs_list')).packs.length, 2);
    for (const [tool, args] of [
      ['capability_packs_open_docs', { pack_id: 'plain' }],
      ['capability_packs_read_file', { pack_id: 'plain', path: 'SKILL.md' }],
      ['capability_packs_enable_tools', { pack_id: 'field-notes' }],
      ['capability_packs_exec_best_effort', { pack_id: 'field-notes', command: './scripts/fail.sh' }],
    ]) {
      const error = await session.refused(tool, args);
      assert.equal(error.code, 'denied');
      assert.match(error.hint, /does not support MCP elicitation.*packs-mcp try/);
    }
    await session.close();
    assert.deepEqual(world.entries().filter(e => e.event === 'run.start'), []);
  });

  test('a client that cannot ask, and a person in a terminal', async t => {
    const { world, person, session } = await start(t, how, { canAsk: false, channels: 'terminal' });
    await session.names();
    const terminal = new Terminal(world, 'approve');
    try {
      await session.ok('capability_packs_enable_tools', { pack_id: 'field-notes' });
      await person.changed();
      await session.names();
      const { parsed } = await session.ok('field-notes__note', { file: 'a', text: 'b' });
      assert.deepEqual(parsed, { file: 'a', stars: 3 });
    } finally {
      await terminal.leave();
    }
    assert.deepEqual(terminal.answered, ['Enable 3 tools of pack field-notes?', 'Run tool note of pack field-notes?']);
    await session.close();
    const decisions = world.entries().filter(e => e.event === 'decision').map(e => `${e.kind} ${e.decision} ${e.channel}`);
    assert.deepEqual(decisions, ['enable once terminal', 'run once terminal']);
  });

  test('errors reach the model as results', async t => {
    const { session } = await enabled(t, how);
    const code = async (name, args) => (await session.refused(name, args)).code;
    assert.equal(await code('capability_packs_open_docs', { pack_id: 'field-note' }), 'not_found');
    assert.equal(await code('capability_packs_read_file', { pack_id: 'field-notes', path: '../plain/SKILL.md' }), 'path_denied');
    assert.equal(await code('capability_packs_enable_tools', { pack_id: 'plain' }), 'invalid_tools');
    assert.equal(await code('field-notes__note', { file: 'NOT OK', text: 'x' }), 'invalid_arguments');
    assert.equal(await code('capability_packs_exec_best_effort', { pack_id: 'plain', command: 'no-such-program-here' }), 'program_not_found');
    assert.equal(await code('capability_packs_list', { cursor: '!' }), 'invalid_arguments');
    await session.close();
  });

  test('twenty calls at once', async t => {
    const { world, person, session } = await enabled(t, how);
    const outs = await Promise.all(Array.from({ length: 20 }, (_, i) => session.ok('field-notes__note', { file: `note-${i}`, text: 'x' })));
    assert.deepEqual(outs.map(out => out.parsed), outs.map((_, i) => ({ file: `note-${i}`, stars: 3 })));
    assert.equal(person.asked.length, 20);
    await session.close();
    const entries = world.entries();
    for (const event of ['run.start', 'run.end']) {
      assert.equal(entries.filter(e => e.event === event).length, 20, event);
    }
  });
}
