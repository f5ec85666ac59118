// What all parts of the page share: text in place, what may be pressed, and requests
// to the server.

export const {el, plain} = packsCard;
export const $ = (id) => document.getElementById(id);

// text sets what a node says, and leaves it alone when it says that already.
export function text(node, value) {
  if (node.textContent !== value) node.replaceChildren(...plain(value));
}

// sync makes the children of parent those of items, in order, and touches only
// what differs. make returns a node with an update function.
export function sync(parent, items, keyOf, make) {
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

// --- words ------------------------------------------------------------------

export const plural = (n, one, many) => `${n} ${n === 1 ? one : many}`;
export const clock = (iso) => new Date(iso).toLocaleTimeString([], {hour: '2-digit', minute: '2-digit', second: '2-digit'});

export function sentence(s) {
  s = s.charAt(0).toUpperCase() + s.slice(1);
  return /[.!?]$/.test(s) ? s : `${s}.`;
}

// asked is the title of a question that is answered.
export const asked = (title) => title.replace(/\?( \(changed\))?$/, '$1');

// left is a time that is left, as 4:32 or 1:04:32.
export function left(ms) {
  const s = Math.max(0, Math.ceil(ms / 1000)), two = (n) => String(n).padStart(2, '0');
  const h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
  return h ? `${h}:${two(m)}:${two(s % 60)}` : `${m}:${two(s % 60)}`;
}

export function size(n) {
  if (n < 1024) return plural(n, 'byte', 'bytes');
  const units = ['KiB', 'MiB', 'GiB', 'TiB'];
  let i = -1;
  do { n /= 1024; i++; } while (n >= 1024 && i < units.length - 1);
  return `${n < 10 ? n.toFixed(1) : Math.round(n)} ${units[i]}`;
}

// say tells the person what happened, in one line for all.
export function say(message) { change(() => text($('news'), message)); }

// tell tells a person who does not see the page what those who do see anyway.
export function tell(message) { text($('heard'), message); }

// quoted is a name in a sentence: it cannot end itself and go on as our words.
export const quoted = (path) => JSON.stringify(path);

const waiting = {calls: 0, sets: 0};

// waits puts into the window's title how many calls or sets of changes wait.
export function waits(what, n) {
  waiting[what] = n;
  const all = waiting.calls + waiting.sets;
  document.title = (all ? `(${all}) ` : '') + 'Approvals \u2013 packs-mcp';
}

// --- settling -----------------------------------------------------------------

// Clicks and keys do nothing for so long after something appeared or moved: nobody
// can have meant what was not there.
const SETTLE = 500;
const settled = new WeakMap(); // node → when it may be used

export function settle(node) {
  settled.set(node, performance.now() + SETTLE);
  node.classList.add('settling');
  setTimeout(() => { if (ready(node)) node.classList.remove('settling'); }, SETTLE + 20);
}

export function ready(node) { return performance.now() >= (settled.get(node) || 0); }

const BOXES = 'main .card, aside li';

export function settleAll() { for (const node of document.querySelectorAll(BOXES)) settle(node); }

// change applies a change and holds back everything that it moved or made, and
// all that is in one box with something that moved there: a line more in a card
// must not put one button where another was.
export function change(apply) {
  const watched = () => [...document.querySelectorAll(BOXES), ...document.querySelectorAll('main button, main input, aside button')];
  const before = new Map(watched().map((n) => [n, n.getBoundingClientRect()]));
  apply();
  const moved = new Set();
  for (const node of watched()) {
    const was = before.get(node), is = node.getBoundingClientRect();
    if (!was || Math.abs(is.top - was.top) > 1 || Math.abs(is.left - was.left) > 1) moved.add(node.closest(BOXES));
  }
  for (const node of moved) if (node) settle(node);
}

// --- the server -----------------------------------------------------------------

// Kept here, since what is stored is cleared when another tab signs in; for a
// reload it is put back.
const meta = (name) => (document.querySelector(`meta[name="${name}"]`) || {}).content || '';
// A team's page has it in itself, and stores nothing.
export const team = meta('packs-team') === 'yes';
const packsKey = meta('packs-key') || sessionStorage.getItem('packs-key') || '';
addEventListener('pagehide', () => {
  if (packsKey && !team && !sessionStorage.getItem('packs-key')) sessionStorage.setItem('packs-key', packsKey);
});

// server is what the page knows of it: whether it is connected, and its clock.
export const server = {live: false, skew: 0};

export const now = () => Date.now() + server.skew;

export function connected(yes, message) {
  server.live = yes;
  change(() => {
    document.body.classList.toggle('lost', !yes);
    text($('link'), message);
  });
}

export function signedOut() {
  if (!team) return connected(false, 'This page is not signed in. Run: packs-mcp approvals open');
  connected(false, 'You are not logged in.');
  change(() => {
    $('login').hidden = false;
    $('logout').hidden = true;
  });
}

const signed = {cache: 'no-store', credentials: 'same-origin', redirect: 'error'};

// listen opens the stream of events.
export const listen = () => fetch('events', {...signed, headers: {'X-Packs-Key': packsKey}});

// refused reports whether the server refused a request since the page is not signed in. A
// team's server also refuses answers of people who may not give them.
export const refused = (res) => res.status === (team ? 401 : 403);

// send posts JSON and returns the answer; an Error has the server's words.
export async function send(path, body) {
  let res;
  try {
    res = await fetch(path, {...signed, method: 'POST', headers: {'Content-Type': 'application/json', 'X-Packs-Key': packsKey}, body: JSON.stringify(body)});
  } catch {
    throw new Error('The server cannot be reached, so nothing was decided.');
  }
  let answer = null;
  try { answer = await res.json(); } catch { /* said below */ }
  if (res.ok && answer) return answer;
  if (refused(res)) signedOut();
  throw new Error((answer && answer.error && answer.error.message) || `The server answered with the status ${res.status}.`);
}

// complain says in a card what went wrong; empty: nothing.
export function complain(card, message) {
  change(() => {
    card.problem.textContent = message;
    card.problem.hidden = !message;
  });
}
