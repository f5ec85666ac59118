// The approval page: its connection to the server, and its keys. Everything it shows is
// set as text, never as markup. Cards are updated in place, so that focus and what was
// typed stay where they are.
import {heard, press, showPending} from './calls.js';
import {showChanges} from './changes.js';
import {setRooms, showHistory} from './rooms.js';
import {$, change, connected, listen, refused, say, send, sentence, server, settleAll, signedOut, team, text} from './ui.js';

const RETRIES = [500, 1000, 2000, 4000];

const handlers = {
  hello: (h) => {
    server.skew = Date.parse(h.now) - Date.now();
    change(() => text($('where'), [h.person, h.project, h.version].filter(Boolean).join(' \u00b7 ')));
  },
  ended: heard,
  pending: (q) => showPending(q.pending),
  changes: showChanges,
  history: showHistory,
  rooms: setRooms,
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

async function follow() {
  for (let failures = 0; failures <= RETRIES.length; failures++) {
    if (failures) {
      connected(false, 'Disconnected: the server has ended, or cannot be reached. Trying again…');
      await new Promise((done) => setTimeout(done, RETRIES[failures - 1]));
    }
    try {
      const res = await listen();
      if (refused(res)) return signedOut();
      if (!res.ok) continue;
      failures = 0;
      connected(true, 'Connected');
      const end = await read(res);
      if (end) return connected(false, end);
    } catch { /* as above */ }
  }
  connected(false, 'Disconnected: the server has ended. The calls that waited are gone; you can close this page.');
  heard([]);
  showPending([]);
  showChanges({held: [], applied: [], more: 0, problem: ''});
}

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
  } else if (card && press(card, e.key, e.repeat)) {
    e.preventDefault();
  }
});

document.addEventListener('visibilitychange', () => { if (document.visibilityState === 'visible') settleAll(); });
// The window can get another size while somebody clicks.
addEventListener('resize', settleAll);

if (team) {
  $('session').hidden = false;
  $('logout').addEventListener('click', async (e) => {
    if (!e.isTrusted) return;
    try {
      await send('logout', {});
      location.replace('./?out');
    } catch (err) {
      say(sentence(err.message));
    }
  });
}
follow();
