// The chats beside the calls: their packs, the files that runs left, and what was
// decided and run.
import {DECISIONS} from './calls.js';
import {$, asked, change, clock, el, plain, ready, say, send, sentence, server, size, sync, text} from './ui.js';

const CHANNELS = {
  elicitation: 'in the client', 'elicitation+app': 'in the client', app: 'on a card in the chat', page: 'on this page', terminal: 'in a terminal',
  grant: 'by an earlier answer', rule: 'by a rule', policy: 'by the policy', prompt: 'by a prompt in the client',
};
const TRUST = {bundled: 'comes with packs-mcp', user: 'yours', untrusted: 'not trusted: from a project or from elsewhere'};

let history = [], rooms = [];

export function showHistory(all) { history = all; showRooms(); }
export function setRooms(all) { rooms = all; showRooms(); }

// How many decisions are shown until the person asks for all.
const RECENT = 12;

function makePast() {
  const title = el('div', {className: 'what'}), line = el('div', {className: 'soft'});
  const node = el('li', {className: 'past'}, title, line);
  node.update = (p) => {
    node.dataset.how = p.decision === 'deny' ? 'no' : p.decision === 'pending' ? 'open' : 'yes';
    text(title, asked(p.title));
    const how = [DECISIONS[p.decision] || p.decision, CHANNELS[p.channel] || p.channel].filter(Boolean).join(' ');
    const outcome = p.outcome || (p.run ? 'running' : '');
    text(line, [clock(p.time), how, p.reason, outcome].filter(Boolean).join(' \u00b7 '));
  };
  return node;
}

function makePack(chat) {
  return () => {
    const name = el('span', {}), toggle = el('button', {type: 'button', className: 'plain', role: 'switch'});
    const trust = el('div', {className: 'soft'}), words = el('p', {}), about = el('details', {className: 'soft'}, el('summary', {}, 'The pack says of itself'), words);
    const bad = el('div', {className: 'bad', role: 'alert'});
    const node = el('li', {}, el('div', {className: 'row'}, name, toggle), trust, about, bad);
    let pack, failed = '', busy = false;
    const show = () => {
      text(name, pack.name || pack.id);
      text(trust, [pack.id === pack.name ? '' : pack.id, Object.hasOwn(TRUST, pack.trust) ? TRUST[pack.trust] : pack.trust].filter(Boolean).join(' · '));
      text(words, pack.description);
      about.hidden = !pack.description;
      text(bad, [failed, ...pack.problems].filter(Boolean).join(' '));
      text(toggle, pack.attached ? 'Attached' : 'Detached');
      toggle.setAttribute('aria-checked', String(pack.attached));
      toggle.setAttribute('aria-label', `Pack ${pack.id} is attached to this chat`);
    };
    toggle.addEventListener('click', async (e) => {
      if (!e.isTrusted || busy || !server.live || !ready(node)) return;
      busy = true;
      const on = !pack.attached;
      try {
        await send('attach', {chat, pack: pack.id, on});
        failed = '';
        say(`${on ? 'Attached' : 'Detached'}: ${pack.id}`);
      } catch (err) {
        failed = sentence(err.message);
      }
      busy = false;
      change(show);
    });
    node.update = (p) => { pack = p; show(); };
    return node;
  };
}

// A file that a run left: shown here on request, in a frame that says what it is. A
// picture or a text of a run could otherwise pass for a part of the page.
function makeFile(chat) {
  return () => {
    const name = el('code', {}), line = el('div', {className: 'soft'}), frame = el('figure', {hidden: true});
    const look = el('button', {type: 'button', className: 'plain'}), load = el('button', {type: 'button', className: 'plain'}, 'Download');
    const bad = el('div', {className: 'bad', role: 'alert'});
    const node = el('li', {}, el('div', {className: 'row'}, name, el('span', {className: 'buttons'}, look, load)), line, frame, bad);
    let file;
    const ask = async (e, what) => {
      if (!e.isTrusted || !server.live || !ready(node)) return;
      let failed = '';
      try { await what(); } catch (err) { failed = sentence(err.message); }
      change(() => text(bad, failed));
    };
    const ticket = (as) => send('artifact', {chat, key: file.key, as});
    const open = (url) => {
      const a = el('a', {href: url, rel: 'noopener noreferrer', target: '_blank'});
      document.body.append(a);
      a.click();
      a.remove();
    };
    const show = (about, ...content) => change(() => {
      frame.replaceChildren(el('figcaption', {}, about), ...content);
      frame.hidden = false;
      label();
    });
    const hide = () => change(() => {
      frame.hidden = true;
      frame.replaceChildren();
      label();
    });
    const label = () => {
      text(look, frame.hidden ? 'Show' : 'Hide');
      look.setAttribute('aria-label', `${look.textContent} ${file.path}`);
      look.setAttribute('aria-expanded', String(!frame.hidden));
    };
    const picture = async () => {
      const {url} = await ticket('picture');
      const img = el('img', {alt: `Picture ${file.path}`, decoding: 'async'});
      await new Promise((done, failed) => {
        img.addEventListener('load', done);
        img.addEventListener('error', () => failed(new Error('this picture cannot be shown')));
        img.src = url;
      });
      show('A run made this picture', img);
    };
    const words = async () => {
      const {text: content, cut} = await send('artifact/text', {chat, key: file.key});
      const whole = el('button', {type: 'button', className: 'plain', 'aria-label': `Open in a tab: ${file.path}`}, 'Open in a tab');
      whole.addEventListener('click', (e) => ask(e, async () => open((await ticket('tab')).url)));
      show(cut ? 'A run wrote this text; this is its beginning' : 'A run wrote this text', el('pre', {tabIndex: 0}, ...plain(content)), whole);
    };
    look.addEventListener('click', (e) => (frame.hidden ? ask(e, file.shown === 'picture' ? picture : words) : e.isTrusted && hide()));
    load.addEventListener('click', (e) => ask(e, async () => {
      const a = el('a', {href: (await ticket('download')).url, rel: 'noopener noreferrer'});
      document.body.append(a);
      a.click();
      a.remove();
    }));
    node.update = (f) => {
      const changed = file && (file.modified !== f.modified || file.size !== f.size);
      file = f;
      if (changed && !frame.hidden) hide();
      text(name, f.path);
      text(line, [size(f.size), f.mime, clock(f.modified)].filter(Boolean).join(' \u00b7 '));
      look.hidden = !f.shown;
      label();
      load.setAttribute('aria-label', `Download ${f.path}`);
    };
    return node;
  };
}

// list is a heading with a list below it, and words for an empty one.
function list(title, empty) {
  const node = el('div', {}), items = el('ul', {'aria-label': title}), none = el('p', {className: 'soft'}, empty);
  node.append(el('h3', {}, title), items, none);
  return {node, items, show: (all, keyOf, make) => {
    sync(items, all, keyOf, make);
    items.hidden = all.length === 0;
    none.hidden = all.length !== 0;
  }};
}

function makeRoom(room) {
  let all = false;
  const more = el('button', {type: 'button', className: 'plain'});
  more.addEventListener('click', (e) => {
    if (!e.isTrusted) return;
    all = true;
    showRooms();
  });
  const head = el('h2', {}), by = el('p', {className: 'soft'}), ends = el('p', {className: 'soft'});
  const past = list('History', 'Nothing was decided yet.');
  const packs = list('Packs', 'There are no packs.');
  const files = list('Files', 'No run has left files here yet.');
  past.node.append(more);
  const node = el('section', {className: 'room'}, head, by, ends, past.node, files.node, packs.node);
  const pack = makePack(room.id), file = makeFile(room.id);
  node.update = (r) => {
    text(head, r.title);
    node.setAttribute('aria-label', r.title);
    // In a line of its own: the client could call itself what a person is called.
    text(by, r.person && r.client ? `Its client calls itself ${r.client}` : '');
    by.hidden = !by.textContent;
    text(ends, r.ends ? `It lasts ${r.ends}.` : '');
    ends.hidden = !r.ends;
    packs.node.hidden = files.node.hidden = !r.real;
    packs.show(r.packs, (p) => p.id, pack);
    files.show(r.artifacts, (a) => a.key, file);
    past.show(all ? r.past : r.past.slice(0, RECENT), (p) => `${p.time} ${p.call} ${p.decision}`, makePast);
    more.hidden = all || r.past.length <= RECENT;
    text(more, `Show all ${r.past.length}`);
  };
  return node;
}

function showRooms() {
  const known = new Set(rooms.map((r) => r.id));
  const all = rooms.map((r) => ({
    ...r, real: true, title: r.person ? `Chat of ${r.person}` : r.client ? `Chat of the client ${r.client}` : 'This chat', past: history.filter((p) => p.chat === r.id),
  }));
  const rest = history.filter((p) => !known.has(p.chat));
  if (rest.length || !all.length) {
    all.push({id: '', real: false, title: all.length ? 'Chats that have ended' : 'Decisions', packs: [], artifacts: [], past: rest});
  }
  change(() => sync($('rooms'), all, (r) => r.id, makeRoom));
}
