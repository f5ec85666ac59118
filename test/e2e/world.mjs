// What every test here is done on: a machine with packs, the program as a server
// over any of its transports, and a person in front of a terminal.

import assert from 'node:assert/strict';
import { execFile, execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';

const binary = path.resolve(process.env.PACKS_MCP_BIN ?? '../../bin/packs-mcp');

// How long something may take that must happen, in milliseconds. It is only
// used up by a test that fails.
export const patience = 30_000;

// World is one user's machine: packs, a home, a workspace.
export class World {
  constructor(t) {
    this.t = t;
    const root = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'packs-mcp-e2e-')));
    t.after(() => fs.rmSync(root, { recursive: true, force: true }));
    this.root = root;
    this.packs = path.join(root, 'packs');
    this.workspace = path.join(root, 'workspace');
    this.env = { PATH: process.env.PATH, HOME: root, PACKS_MCP_HOME: path.join(root, 'home'), PACKS_MCP_SANDBOX_REQUIRE: 'none', PACKS_MCP_APPROVAL_CHANNELS: 'elicitation', SOME_API_KEY: 'never-in-a-run' };
    const archive = fs.readFileSync(new URL('testdata/packs.txtar', import.meta.url), 'utf8');
    const [, ...parts] = archive.split(/^-- (.+) --\n/m);
    for (let i = 0; i < parts.length; i += 2) {
      const file = path.join(this.packs, parts[i]);
      fs.mkdirSync(path.dirname(file), { recursive: true });
      fs.writeFileSync(file, parts[i + 1], { mode: file.endsWith('.sh') ? 0o755 : 0o644 });
    }
    fs.mkdirSync(this.workspace, { mode: 0o700 });
  }

  // server is how a client starts the program over stdio.
  get server() {
    return { command: binary, args: ['serve', '--packs', this.packs, '--workspace', this.workspace], env: this.env, cwd: this.root, stderr: 'pipe' };
  }

  // listen starts the program as an HTTP server, which wants this token.
  async listen(token) {
    const args = [...this.server.args, '--http', '127.0.0.1:0'];
    const child = spawn(binary, args, { env: { ...this.env, PACKS_MCP_TOKEN: token }, cwd: this.root, stdio: ['ignore', 'ignore', 'pipe'] });
    const ended = new Promise(resolve => child.once('close', (code, signal) => resolve(code ?? signal)));
    this.t.after(() => child.kill('SIGKILL'));
    let log = '';
    const base = new Promise((resolve, reject) => {
      child.stderr.setEncoding('utf8').on('data', text => {
        log += text;
        const at = /url=(http:\/\/\S+)\/mcp/.exec(log);
        if (at) resolve(at[1]);
      });
      ended.then(status => reject(new Error(`the server ended with ${status} and logged:\n${log}`)));
    });
    return {
      base: await within(base, 'the server says where it is'),
      headers: { authorization: `Bearer ${token}` },
      // stop ends the server as people do, and it must end well.
      stop: async () => {
        child.kill('SIGTERM');
        assert.equal(await within(ended, 'the server ends'), 0, log);
        assert.doesNotMatch(log, /level=ERROR/);
      },
    };
  }

  run(...args) {
    return execFileSync(binary, args, { env: this.env, cwd: this.root, encoding: 'utf8' });
  }

  // entries verifies the audit log and returns what the last server wrote: the
  // 2.x client starts another one before, only to ask what it speaks.
  entries() {
    assert.match(this.run('audit', 'verify'), /^ok: /);
    const all = this.run('audit', 'show', '--json').trimEnd().split('\n').map(line => JSON.parse(line));
    return all.filter(e => e.server === all.at(-1).server);
  }

  // pipe names a file. The workspace of a program is a layer, so what it does there
  // is seen among its open files. Of the promises, holding is kept when a program
  // holds the file, and gone when none does any more.
  pipe() {
    const name = `hold-${process.pid}-${Math.random().toString(36).slice(2)}.pipe`;
    const held = () => fs.readdirSync('/proc').some(pid => {
      try {
        return /^\d+$/.test(pid) && fs.readdirSync(`/proc/${pid}/fd`).some(fd => {
          try { return fs.readlinkSync(`/proc/${pid}/fd/${fd}`).includes(name); } catch { return false; }
        });
      } catch { return false; }
    });
    const until = async want => { while (held() !== want) await pause(20); };
    const holding = until(true);
    const gone = holding.then(() => until(false));
    return { name, holding: within(holding, 'a program holds the pipe'), gone: within(gone, 'nobody holds the pipe') };
  }
}

// within fails when a promise is not kept in time.
export function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`after ${patience} ms: want: ${what}`)), patience);
  });
  const first = Promise.race([promise, late]).finally(() => clearTimeout(timer));
  first.catch(() => {}); // it is awaited later, or the test has failed before
  return first;
}

const run = promisify(execFile);

// A Terminal is a person who answers every call that waits, with this command:
// approve or deny.
export class Terminal {
  answered = []; // the titles
  #over = new AbortController();

  constructor(world, command) {
    this.done = this.#answer(world, command);
    this.done.catch(() => {}); // leave tells
  }

  async #answer(world, command) {
    const options = { env: world.env, cwd: world.root, encoding: 'utf8' };
    while (!this.#over.signal.aborted) {
      const { stdout } = await run(binary, ['approvals', 'list', '--json'], options).catch(() => ({ stdout: '{"pending": []}' })); // no server yet
      for (const { code, title, answered } of JSON.parse(stdout).pending) {
        if (answered !== '') continue;
        await run(binary, ['approvals', command, code, ...(command === 'approve' ? ['--yes'] : [])], options);
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
