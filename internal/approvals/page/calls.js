// The calls that wait: a list of cards, of which one is open.
import {$, asked, change, clock, complain, el, left as timeLeft, now, plain, plural, ready, say, send, sentence, server, settle, sync, tell, text, waits} from './ui.js';

export const DECISIONS = {
  once: 'allowed once', chat: 'allowed for the chat', always: 'allowed always',
  deny: 'denied', pending: 'returned without an answer',
};

// How long a card that is over says so.
const FAREWELL = 8000;
const EXPIRED = 'Expired. Ask the model to try again.';

const cards = new Map(); // code → card
let ended = new Map(); // code → how the call left the queue
let queue = []; // oldest first
let open = ''; // the code of the open card
let openAnswered = false; // it was answered already when it was opened
let first = true; // no queue has come yet

// heard keeps how calls ended.
export function heard(all) { ended = new Map(all.map((e) => [e.code, e])); }

function makeCard(call) {
  const node = el('article', {className: 'card', tabIndex: 0});
  const card = {
    node, call, shape: '', busy: false, inputs: [], typed: new Map(), opened: new Set(), over: '',
    problem: el('p', {className: 'problem', role: 'alert', hidden: true}),
    when: el('span', {className: 'when'}), time: el('p', {className: 'time'}), note: el('p', {className: 'note'}),
  };
  cards.set(call.code, card);
  node.update = (c) => updateCard(card, c);
  return node;
}

function updateCard(card, call) {
  card.call = call;
  const shape = JSON.stringify([call.card, call.choices, call.fields, call.answered, call.client, call.person, call.client_gone, call.code === open, card.over]);
  if (shape !== card.shape) {
    const again = card.shape !== '';
    card.shape = shape;
    build(card);
    if (again) settle(card.node);
  }
  text(card.note, call.note || '');
  card.note.hidden = !call.note;
  showTime(card);
}

// build draws a card: open, closed to one line, or over.
function build(card) {
  const {call, node} = card;
  const hadFocus = node.contains(document.activeElement) && document.activeElement !== node;
  for (const input of card.inputs) card.typed.set(input.name, input.value); // also for when it is opened again
  const id = `call-${call.code}`, isOpen = call.code === open && !card.over;
  card.busy = false;
  card.anyway = null;
  card.inputs = [];
  node.classList.remove('sent');
  node.classList.toggle('closed', !isOpen);
  node.classList.toggle('over', Boolean(card.over));
  node.setAttribute('aria-labelledby', id);
  const head = el('h2', {id}, ...plain(call.card.title));
  if (card.over) {
    node.replaceChildren(el('div', {className: 'head'}, head), el('p', {className: 'farewell'}, ...plain(card.over)));
  } else if (!isOpen) {
    const show = el('button', {type: 'button', className: 'show', 'aria-expanded': 'false', 'aria-label': `Show: ${call.card.title}`});
    show.addEventListener('click', (e) => { if (e.isTrusted) openCard(card); });
    node.replaceChildren(el('div', {className: 'head'}, head, card.when), ...packsCard.dangers(call.card), show);
  } else {
    drawOpen(card, id, head);
  }
  if (hadFocus) node.focus({preventScroll: true});
}

function drawOpen(card, id, head) {
  const {call} = card;
  const drawn = packsCard.draw(call, {id, values: card.typed, open: card.opened, choose: (value, e) => { if (e.isTrusted) decide(card, value); }});
  card.inputs = drawn.inputs;
  for (const [key, value] of Object.entries(KEYS)) {
    const button = drawn.parts.map((p) => p.querySelector(`button[data-choice="${value}"]`)).find(Boolean);
    if (button) button.setAttribute('aria-keyshortcuts', key);
  }
  // What the client says of itself has a line of its own, which it cannot leave.
  const parts = [
    el('div', {className: 'head'}, head, card.when), card.time,
    ...call.answered ? [el('p', {className: 'kept'}, `You answered: ${DECISIONS[call.answered] || call.answered}. It holds for the same call, made again.`)] : [],
    ...drawn.parts,
  ];
  if (call.client_gone && !call.answered) {
    card.anyway = el('input', {type: 'checkbox', id: `${id}-anyway`});
    const field = el('div', {className: 'field tick'}, card.anyway, el('label', {htmlFor: card.anyway.id}, 'The client is gone. Run it anyway.'));
    parts.splice(parts.findIndex((p) => p.className === 'answers'), 0, field);
  }
  const who = [call.person ? `for ${call.person}` : '', `asked at ${clock(call.asked)}`, `code ${call.code}`].filter(Boolean).join(' \u00b7 ');
  // Below the buttons: notes and problems come and go.
  const after = parts.findIndex((p) => p.className === 'details');
  parts.splice(after < 0 ? parts.length : after, 0, card.note, card.problem);
  parts.push(el('p', {className: 'who'}, ...plain(who)), ...call.client ? [el('p', {className: 'who'}, ...plain(`asked by ${call.client}`))] : []);
  card.node.replaceChildren(...parts);
}

function openCard(card) {
  open = card.call.code;
  openAnswered = Boolean(card.call.answered);
  draw();
  card.node.focus({preventScroll: true});
  card.node.scrollIntoView({block: 'nearest'});
}

const holdsFor = (call) => Date.parse(call.expires) - now();

// showTime writes how much time is left.
function showTime(card) {
  if (card.over) return;
  const {call} = card;
  const waitsFor = call.waits ? Date.parse(call.waits) - now() : 0, holds = holdsFor(call);
  const all = usable(), at = all.indexOf(call), place = all.length > 1 && at >= 0 ? `${at + 1} of ${all.length}` : '';
  let line = '', short = '';
  if (call.answered && waitsFor > 0) line = 'The call goes on.';
  else if (call.answered && call.carried) line = `The client still shows its form: answer there, too, and the call goes on. Your answer holds for ${timeLeft(holds)}.`;
  else if (call.answered) line = `The client has not called again yet. Your answer holds for ${timeLeft(holds)}.`;
  else if (waitsFor > 0) short = `client waits ${timeLeft(waitsFor)} more`;
  else line = `The client stopped waiting. Answer within ${timeLeft(holds)}, then tell the model to go on.`;
  const isOpen = call.code === open;
  text(card.when, [place, short || (isOpen ? '' : call.answered ? 'answered' : `${timeLeft(holds)} left`)].filter(Boolean).join(' \u00b7 '));
  text(card.time, line);
  card.time.hidden = !line;
}

// finish has a card say that it is over; then it goes.
function finish(card, words) {
  if (card.over) return;
  card.over = words;
  tell(`${words} ${card.call.card.title}`);
  setTimeout(() => {
    cards.delete(card.call.code);
    queue = queue.filter((c) => c.code !== card.call.code);
    draw();
  }, FAREWELL);
  draw();
}

// farewell says why a call that the page did not answer has left the queue.
function farewell(code) {
  const e = ended.get(code);
  switch (e && e.problem) {
    case 'expired': return EXPIRED;
    case 'answered': return sentence(e.detail || 'it was answered elsewhere');
    case 'withdrawn': return `Withdrawn: ${e.detail || 'the call is over'}.`;
    default: return 'This call no longer waits.';
  }
}

async function decide(card, value) {
  if (card.busy || card.over || !ready(card.node) || !card.node.isConnected) return;
  if (!server.live) return complain(card, 'The page is not connected to the server, so nothing was decided.');
  const values = {};
  const anyway = Boolean(card.anyway && card.anyway.checked);
  if (value !== 'deny') {
    if (card.anyway && !anyway) {
      complain(card, 'The client is gone. Choose \u201cRun it anyway\u201d first, or deny the call.');
      card.anyway.focus();
      return;
    }
    for (const input of card.inputs) {
      if (input.value.trim() === '') {
        complain(card, `Fill in \u201c${input.labels[0].textContent}\u201d first, or deny the call.`);
        input.focus();
        return;
      }
      values[input.name] = input.value;
    }
  }
  const {code} = card.call, {title} = card.call.card;
  card.busy = card.mine = true;
  card.node.classList.add('sent');
  if (!card.problem.hidden) complain(card, '');
  try {
    const done = await send('decide', {code, decision: value, values, client_gone: anyway});
    let next = '';
    if (done.carried) next = value === 'deny' ? ' The client still shows its form; whatever is chosen there, the call stays denied.' : ' The client still shows its form: answer there, too, and the call goes on.';
    else if (done.held && value !== 'deny') next = ' Tell the model to go on: the client has to make the call again.';
    say(`${value === 'deny' ? 'Denied' : 'Allowed'}: ${asked(title)}.${next}`);
  } catch (err) {
    card.busy = card.mine = false;
    card.node.classList.remove('sent');
    if (card.node.isConnected) complain(card, sentence(err.message));
    else say(sentence(err.message));
  }
}

// usable returns the calls that are not over.
const usable = () => queue.filter((c) => !(cards.get(c.code) || {}).over);

const byAge = (a, b) => Date.parse(a.asked) - Date.parse(b.asked) || (a.code < b.code ? -1 : 1);

// draw shows the queue, and the cards that are over in the places that they had.
function draw() {
  const focused = document.activeElement && document.activeElement.closest && document.activeElement.closest('#cards .card');
  const over = [...cards.values()].filter((c) => c.over).map((c) => c.call);
  const known = new Set(queue.map((c) => c.code));
  const all = [...queue, ...over.filter((c) => !known.has(c.code))].sort(byAge);
  const left = usable(), current = left.find((c) => c.code === open);
  if (!current || current.answered && !openAnswered) {
    const next = left.find((c) => !c.answered) || current || left[0];
    open = next ? next.code : '';
    openAnswered = Boolean(next && next.answered);
  }
  const wait = left.filter((c) => !c.answered).length;
  change(() => {
    sync($('cards'), all, (c) => c.code, makeCard);
    text($('count'), wait === 0 ? 'No call waits' : `${plural(wait, 'call waits', 'calls wait')} for you`);
    $('empty').hidden = all.length > 0;
  });
  // Not to the next call: a key that was meant for this one must not reach it.
  if (focused && (!focused.isConnected || focused.classList.contains('over'))) $('count').focus({preventScroll: true});
  waits('calls', wait);
}

export function showPending(pending) {
  const fresh = pending.filter((c) => !cards.has(c.code));
  const there = new Set(pending.map((c) => c.code));
  queue = [...pending].sort(byAge);
  for (const [code, card] of cards) {
    if (there.has(code) || card.over) continue;
    if (card.mine) cards.delete(code);
    else finish(card, farewell(code));
  }
  draw();
  if (fresh.length && !first) tell(`New: ${fresh.map((c) => c.card.title).join(' ')}`);
  first = false;
}

// Keys of a card that has the focus.
const KEYS = {o: 'once', c: 'chat', a: 'always', d: 'deny'};

// press carries out a key on a card, and reports whether it did anything.
export function press(node, key, repeated) {
  const card = cards.get(node.syncKey);
  if (!card || card.node !== node || repeated) return false;
  if (key === 'Enter' && !card.over && card.call.code !== open && document.activeElement === node) {
    if (ready(node)) openCard(card);
    return true;
  }
  // Only what has a button.
  if (!Object.hasOwn(KEYS, key) || !node.querySelector(`button[data-choice="${KEYS[key]}"]`)) return false;
  decide(card, KEYS[key]);
  return true;
}

setInterval(() => {
  for (const card of [...cards.values()]) {
    if (!card.over && holdsFor(card.call) <= 0) finish(card, card.call.answered ? 'Your answer was not used in time.' : EXPIRED);
  }
  change(() => { for (const card of cards.values()) showTime(card); });
}, 1000);
