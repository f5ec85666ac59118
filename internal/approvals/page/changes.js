// What runs changed in the user's folders: sets that wait, as diffs to apply or
// discard, and sets that were applied, to undo.
import {$, change, clock, complain, el, plain, plural, quoted, ready, say, send, sentence, server, settle, settleAll, sync, tell, text, waits} from './ui.js';

const until = (iso) => new Date(iso).toLocaleString([], {weekday: 'short', hour: '2-digit', minute: '2-digit'});
const whose = (set) => [set.act || (set.tool ? `${set.tool} of pack ${set.pack}` : set.pack), `at ${clock(set.made)}`];
const listed = (set, one) => [...set.changes.map(one), ...set.count > set.changes.length ? [`and ${set.count - set.changes.length} more`] : []];

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
    el('h2', {id}, ...plain(`${plural(set.count, 'change', 'changes')} in ${set.folder}`)),
    el('p', {className: 'who'}, ...plain([...whose(set), `set ${set.id}`, `kept until ${until(set.expires)}`].join(' \u00b7 '))),
  ];
  const actions = el('div', {className: 'actions', role: 'group', 'aria-label': 'What becomes of the changes'});
  if (!view) {
    parts.push(el('ul', {className: 'files', 'aria-label': 'Changes'}, ...listed(set, (c) => el('li', {},
      `${c.kind} `, el('code', {}, ...plain(c.path)), ...c.reason ? [el('div', {className: 'soft'}, ...plain(c.reason))] : [])).map((c) => c.nodeType ? c : el('li', {}, c))));
    actions.append(act('Show what changes', 'allow', () => showSet(card, [])));
  } else {
    const all = view.diffs.length;
    for (const d of view.diffs) {
      const alone = card.keys.length === 0 && (all > 1 || d.cut);
      parts.push(el('div', {className: 'diff'},
        el('div', {className: 'row'}, el('code', {}, ...plain(d.path)), ...alone ? [act('Show alone', 'plain', () => showSet(card, [d.key]), d.path)] : []),
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
  const discard = n === 1 ? 'Discard' : `Discard all ${n}`;
  // What is discarded is gone, so more than one change takes a second step.
  const second = (sure) => {
    const parts = sure ? [
      el('p', {className: 'note', role: 'alert'}, `${plural(n, 'change', 'changes')} will be lost. Nothing brings them back.`),
      act(`Yes, discard all ${n}`, 'deny', () => decideSet(card, 'discard')),
      act('Keep them', 'more', () => { second(false); actions.lastElementChild.focus(); }),
    ] : [...first, act(discard, 'deny', n === 1 ? () => decideSet(card, 'discard') : () => { second(true); actions.lastElementChild.focus(); })];
    actions.replaceChildren(...parts);
  };
  const first = [...actions.children];
  second(false);
  node.replaceChildren(...parts, actions, card.problem);
  if (hadFocus) node.focus({preventScroll: true});
}

// How many columns fit in the narrowest window, of 280 pixels; see page.css.
const COLUMNS = 28;

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
  const flush = () => { if (run.length) pre.append(el('span', {className: sort}, ...plain(run.join('\n')))); run = []; };
  for (const line of lines.replace(/\n$/, '').split('\n')) {
    if (line.startsWith('@@')) inside = true;
    const is = !inside || line.startsWith('@@') ? 'frame' : {'+': 'added', '-': 'removed'}[line[0]] || 'same';
    const long = !fits(line);
    if (is !== sort || long) flush();
    sort = is;
    if (long) pre.append(el('span', {className: `${is} long`}, ...plain(line)));
    else run.push(line);
  }
  flush();
  return pre;
}

// ask sends a request about a set, and says what went wrong.
async function ask(card, path, body) {
  if (!server.live) {
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
  const view = await ask(card, 'changes/view', {keys});
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
  const done = await ask(card, 'changes/decide', {do: what, keys, ...what === 'apply' ? {token: view.token} : {}});
  if (done) say(outcome(what, done, set.folder));
}

function makeApplied() {
  const name = el('span', {}), undo = el('button', {type: 'button', className: 'plain'}, 'Undo');
  const line = el('div', {className: 'soft'}), files = el('div', {className: 'soft'}), lost = el('div', {className: 'soft'});
  const bad = el('div', {className: 'bad', role: 'alert'});
  const node = el('li', {}, el('div', {className: 'row'}, name, undo), line, files, lost, bad);
  let set, shown = '', busy = false;
  undo.addEventListener('click', async (e) => {
    if (!e.isTrusted || busy || !server.live || !ready(node)) return;
    busy = true;
    let failed = '';
    try {
      say(outcome('undo', await send('changes/decide', {set: set.id, do: 'undo'}), set.folder));
    } catch (err) {
      failed = sentence(err.message);
    }
    busy = false;
    change(() => text(bad, failed));
  });
  node.update = (s) => {
    set = s;
    text(name, `${plural(s.count, 'change', 'changes')} in ${s.folder}`);
    text(line, [...whose(s), `undo until ${until(s.expires)}`].join(' \u00b7 '));
    const of = JSON.stringify([s.changes, s.count]);
    if (of !== shown) {
      shown = of;
      files.replaceChildren(...listed(s, (c) => [`${c.kind} `, el('code', {}, ...plain(c.path))]).flatMap((one, i) => [i ? ', ' : '', one].flat()));
    }
    text(lost, s.undo_lost ? `Cannot be taken back wholly: ${s.undo_lost}` : '');
    undo.setAttribute('aria-label', `Undo ${name.textContent}, ${line.textContent}`);
  };
  return node;
}

// The changes are below the calls, where a person need not look. What comes under the
// pointer as the page scrolls is not pressed by a second click.
$('below').addEventListener('click', () => {
  settleAll();
  $('changes').scrollIntoView();
  $('held').focus({preventScroll: true});
});

let known = null; // IDs of the sets that waited when the page last heard; null: it has not

export function showChanges(all) {
  const focused = document.activeElement && document.activeElement.closest && document.activeElement.closest('#sets .card');
  change(() => {
    sync($('sets'), all.held, (s) => s.id, makeSet);
    sync($('applied').querySelector('ul'), all.applied, (s) => s.id, makeApplied);
    text($('held'), `Changes of ${plural(all.held.length, 'run wait', 'runs wait')} for you`);
    text($('below'), `Changes of ${plural(all.held.length, 'run wait', 'runs wait')} below`);
    $('below').hidden = !all.held.length;
    text($('trouble'), all.problem ? sentence(all.problem) : '');
    text($('more'), all.more ? `${plural(all.more, 'more set is', 'more sets are')} not shown here: packs-mcp changes` : '');
    $('changes').hidden = !all.held.length && !all.problem;
    $('applied').hidden = !all.applied.length;
  });
  // Not to the next set: a key that was meant for this one must not reach it.
  if (focused && !focused.isConnected) ($('changes').hidden ? $('count') : $('held')).focus({preventScroll: true});
  const fresh = all.held.filter((s) => known && !known.has(s.id));
  if (fresh.length) tell(fresh.map((s) => `New: ${plural(s.count, 'change waits', 'changes wait')} in ${s.folder}.`).join(' '));
  known = new Set(all.held.map((s) => s.id));
  waits('sets', all.held.length);
}
