'use strict';
// The approval page. Everything it shows is set as text, never as markup. Cards
// are updated in place, so that focus and what was typed stay where they are.
(() => {
  // Clicks and keys do nothing for so long after something appeared or moved:
  // nobody can have meant what was not there.
  const SETTLE = 500;
  const RETRIES = [500, 1000, 2000, 4000];
  const KEYS = {r: 'once', c: 'chat', a: 'always', d: 'deny'};
  const VERBS = {run: 'Run', exec: 'Run', open: 'Open', read: 'Read', enable: 'Enable'};
  const DECISIONS = {
    once: 'allowed once', chat: 'allowed for the chat', always: 'allowed always',
    deny: 'denied', pending: 'returned without an answer',
  };
  const CHANNELS = {
    elicitation: 'in the client', page: 'on this page', terminal: 'in a terminal',
    grant: 'by an earlier answer', rule: 'by a rule', policy: 'by the policy',
  };

  const TRUST = {bundled: 'comes with packs-mcp', user: 'yours', untrusted: 'not trusted: from a project or from elsewhere'};

  // Kept here, since what is stored is cleared when another tab signs in; for a
  // reload it is put back.
  const packsKey = sessionStorage.getItem('packs-key') || '';
  addEventListener('pagehide', () => {
    if (packsKey && !sessionStorage.getItem('packs-key')) sessionStorage.setItem('packs-key', packsKey);
  });
  const $ = (id) => document.getElementById(id);
  const cards = new Map(); // code → card
  let skew = 0; // the server's clock minus ours, ms
  let live = false; // connected
  let first = true; // no queue has come yet
  let history = [], rooms = [];
  const counts = {calls: 0, sets: 0}; // that wait

  // el makes an element; properties that begin with "aria" or "data", and role,
  // are attributes.
  function el(tag, props, ...children) {
    const node = document.createElement(tag);
    for (const [k, v] of Object.entries(props || {})) {
      if (k === 'role' || k.includes('-')) node.setAttribute(k, v);
      else node[k] = v;
    }
    node.append(...children);
    return node;
  }

  function text(node, value) {
    if (node.textContent !== value) node.textContent = value;
  }

  // sync makes the children of parent those of items, in order, and touches only
  // what differs. make returns a node with an update function.
  function sync(parent, items, keyOf, make) {
    const old = new Map([...parent.children].map((n) => [n.syncKey, n]));
    let at = parent.firstElementChild;
    for (const item of items) {
      const key = keyOf(item);
      let node = old.get(key);
      old.delete(key);
      if (!node) {
        node = make(item);
        node.syncKey = key;
      }
      if (node === at) at = at.nextElementSibling;
      else {
        while (at && !items.some((i) => keyOf(i) === at.syncKey)) {
          const gone = at;
          at = at.nextElementSibling;
          old.delete(gone.syncKey);
          gone.remove();
        }
        if (node === at) at = at.nextElementSibling;
        else parent.insertBefore(node, at);
      }
      if (node.update) node.update(item);
    }
    for (const node of old.values()) node.remove();
  }

  const clock = (iso) => new Date(iso).toLocaleTimeString([], {hour: '2-digit', minute: '2-digit', second: '2-digit'});
  const now = () => Date.now() + skew;
  const plural = (n, one, many) => `${n} ${n === 1 ? one : many}`;

  function span(ms) {
    const s = Math.max(0, Math.ceil(ms / 1000));
    return s < 100 ? `${s} s` : `${Math.round(s / 60)} min`;
  }

  function size(n) {
    if (n < 1024) return plural(n, 'byte', 'bytes');
    const units = ['KiB', 'MiB', 'GiB', 'TiB'];
    let i = -1;
    do { n /= 1024; i++; } while (n >= 1024 && i < units.length - 1);
    return `${n < 10 ? n.toFixed(1) : Math.round(n)} ${units[i]}`;
  }

  function say(message) { change(() => text($('news'), message)); }

  // send posts JSON and returns the answer; an Error has the server's words.
  async function send(path, body) {
    let res;
    try {
      res = await fetch(path, {
        method: 'POST', cache: 'no-store', credentials: 'same-origin', redirect: 'error',
        headers: {'Content-Type': 'application/json', 'X-Packs-Key': packsKey},
        body: JSON.stringify(body),
      });
    } catch {
      throw new Error('The server cannot be reached, so nothing was decided.');
    }
    let answer = null;
    try { answer = await res.json(); } catch { /* said below */ }
    if (res.ok && answer) return answer;
    if (res.status === 403) signedOut();
    throw new Error((answer && answer.error && answer.error.message) || `The server answered with the status ${res.status}.`);
  }

  // --- settling -----------------------------------------------------------

  const settled = new WeakMap(); // node → when it may be used

  function settle(node) {
    settled.set(node, performance.now() + SETTLE);
    node.classList.add('settling');
    setTimeout(() => { if (ready(node)) node.classList.remove('settling'); }, SETTLE + 20);
  }

  function ready(node) { return performance.now() >= (settled.get(node) || 0); }

  // change applies a change and holds back everything that it moved or made, and
  // all that is in one box with something that moved there: a line more in a card
  // must not put one button where another was.
  function change(apply) {
    const boxes = 'main .card, aside li';
    const watched = () => [...document.querySelectorAll(boxes), ...document.querySelectorAll('main button, main input, aside button')];
    const before = new Map(watched().map((n) => [n, n.getBoundingClientRect()]));
    apply();
    const moved = new Set();
    for (const node of watched()) {
      const was = before.get(node), is = node.getBoundingClientRect();
      if (!was || Math.abs(is.top - was.top) > 1 || Math.abs(is.left - was.left) > 1) moved.add(node.closest(boxes));
    }
    for (const node of moved) if (node) settle(node);
  }

  // --- calls --------------------------------------------------------------

  function label(call, choice) {
    const verb = VERBS[call.kind] || 'Allow';
    switch (choice.value) {
      case 'once': return choice.lasts ? `${verb} from now on` : verb;
      case 'chat': return `${verb} for this chat`;
      case 'always': return 'Always';
      case 'deny': return call.answered ? 'Deny after all' : 'Deny';
      default: return choice.title;
    }
  }

  function makeCard(call) {
    const node = el('article', {className: 'card', tabIndex: 0});
    const card = {node, shape: '', call, busy: false, inputs: []};
    cards.set(call.code, card);
    node.update = (c) => updateCard(card, c);
    return node;
  }

  function updateCard(card, call) {
    card.call = call;
    const shape = JSON.stringify([call.title, call.text, call.choices, call.fields, call.answered, call.client, call.person, call.client_gone]);
    if (shape !== card.shape) {
      const again = card.shape !== '';
      card.shape = shape;
      build(card, call);
      if (again) settle(card.node);
    }
    text(card.note, call.note || '');
    card.note.hidden = !call.note;
    tick(card);
  }

  function build(card, call) {
    const hadFocus = card.node.contains(document.activeElement) && document.activeElement !== card.node;
    const values = new Map(card.inputs.map((i) => [i.name, i.value]));
    const id = `call-${call.code}`;
    card.busy = false;
    card.node.classList.remove('sent');
    card.node.setAttribute('aria-labelledby', id);
    card.time = el('p', {className: 'time'});
    card.note = el('p', {className: 'note'});
    card.problem = el('p', {className: 'problem', role: 'alert', hidden: true});
    // What the client says of itself has a line of its own, which it cannot leave.
    const who = [call.person ? `for ${call.person}` : '', `at ${clock(call.asked)}`, `code ${call.code}`].filter(Boolean).join(' · ');
    const parts = [
      el('h2', {id}, call.title),
      el('p', {className: 'who'}, who),
      ...call.client ? [el('p', {className: 'who'}, `asked by ${call.client}`)] : [],
      card.time,
      el('pre', {}, call.text),
    ];
    card.inputs = [];
    for (const field of call.answered ? [] : call.fields || []) {
      const input = el('input', {name: field.name, id: `${id}-${field.name}`, autocomplete: 'off', spellcheck: false, value: values.get(field.name) || ''});
      card.inputs.push(input);
      parts.push(el('div', {className: 'field'}, el('label', {htmlFor: input.id}, field.title), input));
    }
    if (call.answered) {
      parts.push(el('p', {className: 'kept'}, `You answered: ${DECISIONS[call.answered] || call.answered}. It holds for the same call, made again.`));
    }
    const group = el('div', {role: 'group', 'aria-label': 'Your answer'});
    for (const choice of call.choices || []) {
      if (call.answered && choice.value !== 'deny') continue;
      const name = label(call, choice);
      const button = el('button', {
        type: 'button', className: {once: 'allow', deny: 'deny'}[choice.value] || 'allow more',
        'aria-label': [name, choice.title === name ? '' : choice.title, call.title].filter(Boolean).join('. '),
        'data-choice': choice.value,
      }, name);
      const key = Object.keys(KEYS).find((k) => KEYS[k] === choice.value);
      if (key) button.setAttribute('aria-keyshortcuts', key);
      button.addEventListener('click', (e) => { if (e.isTrusted) decide(card, choice.value); });
      group.append(el('div', {className: 'choice'}, button, el('span', {}, choice.title === name ? '' : choice.title)));
    }
    card.anyway = null;
    if (call.client_gone && !call.answered) {
      card.anyway = el('input', {type: 'checkbox', id: `${id}-anyway`});
      parts.push(el('div', {className: 'field'}, card.anyway, el('label', {htmlFor: card.anyway.id}, 'The client is gone. Run it anyway.')));
    }
    // Below the buttons: these come and go.
    parts.push(group, card.note, card.problem);
    card.node.replaceChildren(...parts);
    if (hadFocus) card.node.focus({preventScroll: true});
  }

  // tick writes how much time is left.
  function tick(card) {
    const waits = card.call.waits ? Date.parse(card.call.waits) - now() : 0;
    const holds = Date.parse(card.call.expires) - now();
    let line;
    if (card.call.answered && waits > 0) line = 'The call goes on.';
    else if (card.call.answered) line = `The client has not called again yet; your answer holds for ${span(holds)}.`;
    else if (waits > 0) line = `The client waits ${span(waits)}.`;
    else line = `The client was told to try again; your answer holds for ${span(holds)}.`;
    text(card.time, line);
  }

  function complain(card, message) {
    change(() => {
      card.problem.textContent = message;
      card.problem.hidden = !message;
    });
  }

  async function decide(card, value) {
    if (card.busy || !ready(card.node) || !card.node.isConnected) return;
    if (!live) return complain(card, 'The page is not connected to the server, so nothing was decided.');
    const values = {};
    const anyway = Boolean(card.anyway && card.anyway.checked);
    if (value !== 'deny') {
      if (card.anyway && !anyway) {
        complain(card, 'The client is gone. Choose “Run it anyway” first, or deny the call.');
        card.anyway.focus();
        return;
      }
      for (const input of card.inputs) {
        if (input.value.trim() === '') {
          complain(card, `Fill in “${input.labels[0].textContent}” first, or deny the call.`);
          input.focus();
          return;
        }
        values[input.name] = input.value;
      }
    }
    const {code, title} = card.call;
    card.busy = true;
    card.node.classList.add('sent');
    if (!card.problem.hidden) complain(card, '');
    try {
      const done = await send('/decide', {code, decision: value, values, client_gone: anyway});
      const what = value === 'deny' ? 'Denied' : 'Allowed';
      say(`${what}: ${title}` + (done.held && value !== 'deny' ? ' The client has to make the call again.' : ''));
    } catch (err) {
      card.busy = false;
      card.node.classList.remove('sent');
      if (card.node.isConnected) complain(card, sentence(err.message));
      else say(sentence(err.message));
    }
  }

  function sentence(s) {
    s = s.charAt(0).toUpperCase() + s.slice(1);
    return /[.!?]$/.test(s) ? s : `${s}.`;
  }

  function showPending(queue) {
    const focused = document.activeElement && document.activeElement.closest && document.activeElement.closest('.card');
    const fresh = queue.filter((c) => !cards.has(c.code));
    const open = queue.filter((c) => !c.answered).length;
    change(() => {
      sync($('cards'), queue, (c) => c.code, makeCard);
      text($('count'), open === 0 ? 'No call waits' : `${plural(open, 'call waits', 'calls wait')} for you`);
    });
    for (const [code, card] of cards) {
      if (!card.node.isConnected) cards.delete(code);
    }
    // Not to the next call: a key that was meant for this one must not reach it.
    if (focused && !focused.isConnected) $('count').focus({preventScroll: true});
    counts.calls = open;
    title();
    if (fresh.length && !first) say(`New: ${fresh.map((c) => c.title).join(' ')}`);
    first = false;
  }

  function title() {
    const open = counts.calls + counts.sets;
    document.title = (open ? `(${open}) ` : '') + 'Approvals – packs-mcp';
  }

  // --- what runs changed ----------------------------------------------------

  const until = (iso) => new Date(iso).toLocaleString([], {weekday: 'short', hour: '2-digit', minute: '2-digit'});
  const whose = (set) => [set.act || (set.tool ? `${set.tool} of pack ${set.pack}` : set.pack), `at ${clock(set.made)}`];
  const listed = (set, one) => [...set.changes.map(one), ...set.count > set.changes.length ? [`and ${set.count - set.changes.length} more`] : []];

  // quoted is a name in a sentence: it cannot end itself and go on as our words.
  const quoted = (path) => JSON.stringify(path);

  // A view belongs to its set as it was when it was asked for.
  function makeSet(first) {
    const node = el('article', {className: 'card', tabIndex: 0});
    const card = {node, set: first, shape: '', view: null, keys: [], busy: false, problem: el('p', {className: 'problem', role: 'alert', hidden: true})};
    node.update = (set) => {
      const shape = JSON.stringify(set);
      if (shape === card.shape) return;
      const again = card.shape !== '';
      Object.assign(card, {set, shape, view: null, keys: []});
      buildSet(card);
      if (again) settle(node);
    };
    return node;
  }

  function buildSet(card) {
    const {set, view, node} = card;
    const hadFocus = node.contains(document.activeElement) && document.activeElement !== node;
    const id = `set-${set.id}`;
    card.busy = false;
    node.classList.remove('sent');
    node.setAttribute('aria-labelledby', id);
    const act = (name, className, does, about) => {
      const button = el('button', {type: 'button', className, 'aria-label': [name, about || set.folder].join('. ')}, name);
      button.addEventListener('click', (e) => { if (e.isTrusted && !card.busy && ready(node)) does(); });
      return button;
    };
    const parts = [
      el('h2', {id}, `${plural(set.count, 'change', 'changes')} in ${set.folder}`),
      el('p', {className: 'who'}, [...whose(set), `set ${set.id}`].join(' · ')),
      el('p', {className: 'time'}, `Kept until ${until(set.expires)}.`),
    ];
    const actions = el('div', {className: 'actions', role: 'group', 'aria-label': 'What becomes of the changes'});
    if (!view) {
      parts.push(el('ul', {className: 'files', 'aria-label': 'Changes'}, ...listed(set, (c) => el('li', {},
        `${c.kind} `, el('code', {}, c.path), ...c.reason ? [el('div', {className: 'soft'}, c.reason)] : [])).map((c) => c.nodeType ? c : el('li', {}, c))));
      actions.append(act('Show what changes', 'more', () => showSet(card, [])));
    } else {
      const all = view.diffs.length;
      for (const d of view.diffs) {
        const alone = card.keys.length === 0 && (all > 1 || d.cut);
        parts.push(el('div', {className: 'diff'},
          el('div', {className: 'row'}, el('code', {}, d.path), ...alone ? [act('Show alone', 'plain', () => showSet(card, [d.key]), d.path)] : []),
          drawDiff(d.text)));
      }
      if (view.token) {
        actions.append(act(all === 1 ? 'Apply' : `Apply all ${all}`, 'allow', () => decideSet(card, 'apply')));
      } else {
        parts.push(el('p', {className: 'note'}, 'This is too long to be shown whole. Show and apply the changes one by one, or use: '
          + `packs-mcp changes show ${set.id}`));
      }
      if (card.keys.length) actions.append(act('Show all', 'more', () => showSet(card, [])));
    }
    const n = card.keys.length ? view.diffs.length : set.count; // a view that was cut may lack some
    actions.append(act(n === 1 ? 'Discard' : `Discard all ${n}`, 'deny', () => decideSet(card, 'discard')));
    node.replaceChildren(...parts, actions, card.problem);
    if (hadFocus) node.focus({preventScroll: true});
  }

  // How many columns fit in the narrowest window, of 280 pixels; see page.css.
  const COLUMNS = 40;

  // fits reports whether a line certainly takes one row.
  function fits(line) {
    if (line.length > COLUMNS) return false;
    let columns = 0;
    for (const c of line) columns += c === '\t' ? 4 : c > '~' ? 2 : 1;
    return columns <= COLUMNS;
  }

  // drawDiff shows lines with their signs; neighbours of one sort are one element.
  // Before the first "@@", a sign at the start is part of a file's name line. A line
  // that may be wrapped is an element of its own, whose other rows are indented, so
  // that none of them passes for a line with a sign.
  function drawDiff(lines) {
    const pre = el('pre', {});
    let sort = null, run = [], inside = false;
    const flush = () => { if (run.length) pre.append(el('span', {className: sort}, run.join('\n'))); run = []; };
    for (const line of lines.replace(/\n$/, '').split('\n')) {
      if (line.startsWith('@@')) inside = true;
      const is = !inside || line.startsWith('@@') ? 'frame' : {'+': 'added', '-': 'removed'}[line[0]] || 'same';
      const long = !fits(line);
      if (is !== sort || long) flush();
      sort = is;
      if (long) pre.append(el('span', {className: `${is} long`}, line));
      else run.push(line);
    }
    flush();
    return pre;
  }

  // ask sends a request about a set, and says what went wrong.
  async function ask(card, path, body) {
    if (!live) {
      complain(card, 'The page is not connected to the server, so nothing was done.');
      return null;
    }
    card.busy = true;
    card.node.classList.add('sent');
    if (!card.problem.hidden) complain(card, '');
    try {
      return await send(path, {set: card.set.id, ...body});
    } catch (err) {
      if (!card.node.isConnected) say(sentence(err.message));
      change(() => { Object.assign(card, {view: null, keys: []}); buildSet(card); });
      complain(card, sentence(err.message));
      return null;
    } finally {
      card.busy = false;
      card.node.classList.remove('sent');
    }
  }

  async function showSet(card, keys) {
    const {shape} = card;
    const view = await ask(card, '/changes/view', {keys});
    if (view && card.shape === shape) change(() => { Object.assign(card, {view, keys}); buildSet(card); });
  }

  const DONE = {apply: ['Applied', 'Not applied'], discard: ['Discarded', 'Not discarded'], undo: ['Taken back', 'Not taken back']};

  // outcome says what became of a decision.
  function outcome(what, done, folder) {
    const left = done.left.map((c) => `${quoted(c.path)} (${c.reason})`).join(', ');
    return [
      done.done || !left ? `${DONE[what][0]}: ${plural(done.done, 'change', 'changes')} in ${folder}.` : '',
      left ? `${DONE[what][1]}: ${left}.` : '',
    ].filter(Boolean).join(' ');
  }

  async function decideSet(card, what) {
    const {set, view, keys} = card;
    const done = await ask(card, '/changes/decide', {do: what, keys, ...what === 'apply' ? {token: view.token} : {}});
    if (done) say(outcome(what, done, set.folder));
  }

  function makeApplied() {
    const name = el('span', {}), undo = el('button', {type: 'button', className: 'plain'}, 'Undo');
    const line = el('div', {className: 'soft'}), files = el('div', {className: 'soft'}), lost = el('div', {className: 'soft'});
    const bad = el('div', {className: 'bad', role: 'alert'});
    const node = el('li', {}, el('div', {className: 'row'}, name, undo), line, files, lost, bad);
    let set, shown = '', busy = false;
    undo.addEventListener('click', async (e) => {
      if (!e.isTrusted || busy || !live || !ready(node)) return;
      busy = true;
      let failed = '';
      try {
        say(outcome('undo', await send('/changes/decide', {set: set.id, do: 'undo'}), set.folder));
      } catch (err) {
        failed = sentence(err.message);
      }
      busy = false;
      change(() => text(bad, failed));
    });
    node.update = (s) => {
      set = s;
      text(name, `${plural(s.count, 'change', 'changes')} in ${s.folder}`);
      text(line, [...whose(s), `undo until ${until(s.expires)}`].join(' · '));
      const of = JSON.stringify([s.changes, s.count]);
      if (of !== shown) {
        shown = of;
        files.replaceChildren(...listed(s, (c) => [`${c.kind} `, el('code', {}, c.path)]).flatMap((one, i) => [i ? ', ' : '', one].flat()));
      }
      text(lost, s.undo_lost ? `Cannot be taken back wholly: ${s.undo_lost}` : '');
      undo.setAttribute('aria-label', `Undo ${name.textContent}, ${line.textContent}`);
    };
    return node;
  }

  let known = null; // IDs of the sets that waited when the page last heard; null: it has not

  function showChanges(all) {
    const focused = document.activeElement && document.activeElement.closest && document.activeElement.closest('#sets .card');
    change(() => {
      sync($('sets'), all.held, (s) => s.id, makeSet);
      sync($('applied').querySelector('ul'), all.applied, (s) => s.id, makeApplied);
      text($('held'), `Changes of ${plural(all.held.length, 'run wait', 'runs wait')} for you`);
      text($('trouble'), all.problem ? sentence(all.problem) : '');
      text($('more'), all.more ? `${plural(all.more, 'more set is', 'more sets are')} not shown here: packs-mcp changes` : '');
      $('changes').hidden = !all.held.length && !all.problem;
      $('applied').hidden = !all.applied.length;
    });
    // Not to the next set: a key that was meant for this one must not reach it.
    if (focused && !focused.isConnected) ($('changes').hidden ? $('count') : $('held')).focus({preventScroll: true});
    const fresh = all.held.filter((s) => known && !known.has(s.id));
    if (fresh.length) say(fresh.map((s) => `New: ${plural(s.count, 'change waits', 'changes wait')} in ${s.folder}.`).join(' '));
    known = new Set(all.held.map((s) => s.id));
    counts.sets = all.held.length;
    title();
  }

  // --- history, packs, files ------------------------------------------------

  function makePast() {
    const title = el('div', {}), line = el('div', {className: 'soft'});
    const node = el('li', {}, title, line);
    node.update = (p) => {
      text(title, p.title);
      const how = [DECISIONS[p.decision] || p.decision, CHANNELS[p.channel] || p.channel].filter(Boolean).join(' ');
      const outcome = p.outcome || (p.run ? 'running' : '');
      text(line, [clock(p.time), how, p.reason, outcome].filter(Boolean).join(' · '));
    };
    return node;
  }

  function makePack(chat) {
    return () => {
      const name = el('span', {}), toggle = el('button', {type: 'button', className: 'plain', role: 'switch'});
      const trust = el('div', {className: 'soft'}), about = el('div', {className: 'soft'});
      const bad = el('div', {className: 'bad', role: 'alert'});
      const node = el('li', {}, el('div', {className: 'row'}, name, toggle), trust, about, bad);
      let pack, failed = '', busy = false;
      const show = () => {
        text(name, pack.name || pack.id);
        text(trust, [pack.id, Object.hasOwn(TRUST, pack.trust) ? TRUST[pack.trust] : pack.trust].filter(Boolean).join(' · '));
        text(about, pack.description ? `The pack says of itself: “${pack.description}”` : '');
        text(bad, [failed, ...pack.problems].filter(Boolean).join(' '));
        text(toggle, pack.attached ? 'Attached' : 'Detached');
        toggle.setAttribute('aria-checked', String(pack.attached));
        toggle.setAttribute('aria-label', `Pack ${pack.id} is attached to this chat`);
      };
      toggle.addEventListener('click', async (e) => {
        if (!e.isTrusted || busy || !live || !ready(node)) return;
        busy = true;
        const on = !pack.attached;
        try {
          await send('/attach', {chat, pack: pack.id, on});
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

  function makeFile(chat) {
    return () => {
      const name = el('span', {}), line = el('div', {className: 'soft'});
      const open = el('button', {type: 'button', className: 'plain'}, 'Open');
      const load = el('button', {type: 'button', className: 'plain'}, 'Download');
      const bad = el('div', {className: 'bad', role: 'alert'});
      const node = el('li', {}, el('div', {className: 'row'}, name, el('span', {className: 'buttons'}, open, load)), line, bad);
      let file;
      const get = async (e, download) => {
        if (!e.isTrusted || !live || !ready(node)) return;
        try {
          const {url} = await send('/artifact', {chat, key: file.key, download});
          const a = el('a', {href: url, rel: 'noopener noreferrer'});
          if (!download) a.target = '_blank';
          document.body.append(a);
          a.click();
          a.remove();
          text(bad, '');
        } catch (err) {
          change(() => text(bad, sentence(err.message)));
        }
      };
      open.addEventListener('click', (e) => get(e, false));
      load.addEventListener('click', (e) => get(e, true));
      node.update = (f) => {
        file = f;
        text(name, f.path);
        text(line, [size(f.size), f.mime, clock(f.modified)].filter(Boolean).join(' · '));
        open.hidden = !f.inline;
        open.setAttribute('aria-label', `Open ${f.path}`);
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
    const head = el('h2', {}), by = el('p', {className: 'soft'}), ends = el('p', {className: 'soft'});
    const past = list('History', 'Nothing was decided yet.');
    const packs = list('Packs', 'There are no packs.');
    const files = list('Files', 'No run has left files here yet.');
    const node = el('section', {className: 'room'}, head, by, ends, packs.node, files.node, past.node);
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
      past.show(r.past, (p) => `${p.time} ${p.call} ${p.decision}`, makePast);
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

  // --- the connection -------------------------------------------------------

  function connected(yes, message) {
    live = yes;
    change(() => {
      document.body.classList.toggle('lost', !yes);
      text($('link'), message);
    });
  }

  function signedOut() {
    connected(false, 'This page is not signed in. Run: packs-mcp approvals open');
  }

  const handlers = {
    hello: (h) => {
      skew = Date.parse(h.now) - Date.now();
      change(() => text($('where'), [h.project, h.version].filter(Boolean).join(' · ')));
    },
    pending: (q) => showPending(q.pending),
    changes: showChanges,
    history: (h) => { history = h; showRooms(); },
    rooms: (r) => { rooms = r; showRooms(); },
    superseded: () => 'This page is open in newer tabs. Reload it to use it here.',
  };

  // read passes the events of one stream on. It returns the words for an end
  // that is final, or nothing.
  async function read(res) {
    const reader = res.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = '';
    for (;;) {
      const {value, done} = await reader.read();
      if (done) return '';
      const blocks = (rest + value).split('\n\n');
      rest = blocks.pop();
      for (const block of blocks) {
        const event = /^event: (.*)$/m.exec(block), data = /^data: (.*)$/m.exec(block);
        if (!event || !data || !Object.hasOwn(handlers, event[1])) continue;
        const end = handlers[event[1]](JSON.parse(data[1]));
        if (end) return end;
      }
    }
  }

  async function listen() {
    for (let failures = 0; failures <= RETRIES.length; failures++) {
      if (failures) {
        connected(false, 'Disconnected: the server has ended, or cannot be reached. Trying again…');
        await new Promise((done) => setTimeout(done, RETRIES[failures - 1]));
      }
      try {
        const res = await fetch('/events', {
          cache: 'no-store', credentials: 'same-origin', redirect: 'error',
          headers: {'X-Packs-Key': packsKey},
        });
        if (res.status === 403) return signedOut();
        if (!res.ok) continue;
        failures = 0;
        connected(true, 'Connected');
        const end = await read(res);
        if (end) return connected(false, end);
      } catch { /* as above */ }
    }
    connected(false, 'Disconnected: the server has ended. The calls that waited are gone; you can close this page.');
    showPending([]);
    showChanges({held: [], applied: [], more: 0, problem: ''});
  }

  // --- keys -----------------------------------------------------------------

  function move(step) {
    const all = [...document.querySelectorAll('main .card')];
    if (!all.length) return;
    const here = all.indexOf(document.activeElement.closest('.card'));
    const to = here < 0 ? 0 : Math.min(Math.max(here + step, 0), all.length - 1);
    all[to].focus();
  }

  document.addEventListener('keydown', (e) => {
    if (!e.isTrusted || e.ctrlKey || e.metaKey || e.altKey || e.shiftKey || e.isComposing) return;
    const at = document.activeElement || document.body;
    if (at.matches('input')) return;
    const card = at.closest('.card');
    const step = {j: 1, k: -1}[e.key] || (at === card && {ArrowDown: 1, ArrowUp: -1}[e.key]);
    if (step) {
      e.preventDefault();
      move(step);
    } else if (card && Object.hasOwn(KEYS, e.key) && !e.repeat) {
      const c = cards.get(card.syncKey);
      // Only what has a button.
      if (c && card.querySelector(`button[data-choice="${KEYS[e.key]}"]`)) decide(c, KEYS[e.key]);
    }
  });

  document.addEventListener('visibilitychange', () => {
    if (document.visibilityState === 'visible') for (const node of document.querySelectorAll('.card, aside li')) settle(node);
  });

  setInterval(() => change(() => { for (const card of cards.values()) tick(card); }), 1000);
  // The window can get another size while somebody clicks.
  addEventListener('resize', () => { for (const node of document.querySelectorAll('.card, aside li')) settle(node); });
  listen();
})();
