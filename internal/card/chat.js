'use strict';
// The card in a client's chat. It speaks with the client's page around its frame, by
// MCP Apps, and believes no other window. It is given questions in one of two ways: as
// an elicitation, which it answers, or beside the result of a tool, where it answers
// with a call of another tool.
(() => {
  const VERSION = '2026-01-26', KEY = 'packs-mcp/approval';
  // As on the page: nobody can have meant what was not there.
  const SETTLE = 500;
  const {el, plain, draw} = packsCard;
  const list = document.getElementById('cards'), status = document.getElementById('status');
  const asked = new Map(); // id → what takes the answer to our request
  const cards = new Map(); // what names a question → its card
  let origin = null; // of the client's page, once it has answered
  let host = {}; // what the client can do
  let nextID = 0, usable = Infinity;

  // --- the client --------------------------------------------------------------

  // A page without an origin of its own, such as a sandbox, has none to be named by.
  const post = (message) => parent.postMessage({jsonrpc: '2.0', ...message}, origin && origin !== 'null' ? origin : '*');
  const notify = (method, params) => post({method, params});
  const request = (method, params) => new Promise((resolve, reject) => {
    const id = ++nextID;
    asked.set(id, {resolve, reject});
    post({id, method, params});
  });

  addEventListener('message', (e) => {
    if (e.source !== parent || origin !== null && e.origin !== origin) return;
    const m = e.data;
    if (!m || typeof m !== 'object' || m.jsonrpc !== '2.0') return;
    if (typeof m.method !== 'string') {
      const waiting = asked.get(m.id);
      if (!waiting) return;
      asked.delete(m.id);
      if (origin === null) ({origin} = e);
      if (m.error) waiting.reject(new Error(String(m.error.message || 'the client refused it')));
      else waiting.resolve(m.result || {});
      return;
    }
    if (origin === null) return; // it has not answered us yet
    const params = m.params || {};
    // An id may be 0.
    if (m.id !== undefined && m.id !== null) answer(m.id, m.method, params);
    else heard(m.method, params);
  });

  function answer(id, method, params) {
    switch (method) {
      case 'elicitation/create': return elicited(id, params);
      case 'ping': return post({id, result: {}});
      case 'ui/resource-teardown':
        for (const card of cards.values()) finish(card, 'The client closed this card.');
        return post({id, result: {}});
      default: return post({id, error: {code: -32601, message: 'this card does not know the method'}});
    }
  }

  function heard(method, params) {
    switch (method) {
      case 'ui/notifications/tool-result': return shown(params);
      case 'ui/notifications/tool-cancelled': return say('The call was cancelled. Nothing was decided.');
      case 'ui/notifications/host-context-changed': return dress(params);
      case 'notifications/cancelled': {
        const card = cards.get(`elicitation ${JSON.stringify(params.requestId)}`);
        if (card) finish(card, 'Withdrawn: it was answered elsewhere, or the call is over.');
      }
    }
  }

  // dress takes on the client's colours. What else a client might write there is
  // nothing that this card takes.
  function dress(context) {
    const root = document.documentElement.style, names = /^--(color|font)-[a-z0-9-]+$/;
    if (context.theme === 'light' || context.theme === 'dark') root.colorScheme = context.theme;
    const variables = context.styles && context.styles.variables || {};
    for (const [name, value] of Object.entries(variables)) {
      if (names.test(name) && typeof value === 'string') root.setProperty(name, value);
    }
  }

  function say(words) {
    status.replaceChildren(...plain(words));
    status.hidden = !words;
  }

  // --- questions ---------------------------------------------------------------

  const isText = (v) => typeof v === 'string';
  const areAll = (list, is) => Array.isArray(list) && list.every((v) => v && is(v));
  const orNone = (list) => (list === undefined || list === null ? [] : list);

  // isWhole reports whether a question is one that can be shown completely.
  function isWhole(q) {
    const {card} = q || {};
    return Boolean(card) && isText(card.title) && card.title !== '' && isText(card.command || '') &&
      areAll(card.facts, (f) => isText(f.label) && isText(f.value) && isText(f.section)) &&
      areAll(orNone(card.marks), (m) => isText(m.text) && isText(m.weight)) &&
      areAll(orNone(card.quotes), (v) => isText(v.who) && isText(v.text)) &&
      areAll(orNone(q.fields), (f) => isText(f.name) && isText(f.title)) &&
      areAll(q.choices, (c) => isText(c.value) && isText(c.title)) && q.choices.length > 0;
  }

  // elicited shows a question whose answer the client waits for.
  function elicited(id, params) {
    const name = `elicitation ${JSON.stringify(id)}`;
    const reply = (decision, values) => {
      post({id, result: {action: 'accept', content: {...values, decision}}});
      return Promise.resolve('');
    };
    const question = (params._meta || {})[KEY];
    if (isWhole(question)) return show(name, question, '', reply);
    // The client did not pass the facts on, or not as they were. The message has all
    // of them, too.
    const schema = (params.requestedSchema || {}).properties || {}, decision = schema.decision || {};
    const values = orNone(decision.enum), titles = orNone(decision.enumNames);
    const choices = Array.isArray(values) ? values.filter(isText).map((value, i) => ({value, title: isText(titles[i]) ? titles[i] : value, means: ''})) : [];
    const fields = Object.entries(schema).filter(([key]) => key !== 'decision').map(([key, f]) => ({name: key, title: f && isText(f.title) ? f.title : key}));
    const message = isText(params.message) ? params.message : '';
    const text = {kind: '', card: {title: 'Allow this call?', facts: []}, choices, fields};
    if (message === '') {
      text.choices = choices.filter((c) => c.value === 'deny');
      text.limit = 'The client passed nothing of the question to this card, so it cannot be allowed here. Look with: packs-mcp approvals';
    }
    show(name, text, message, reply);
  }

  // shown shows the questions that came with a tool's result.
  function shown(result) {
    const about = (result._meta || {})[KEY], error = result.isError;
    if (error || !about || !Array.isArray(about.questions) || !isText(about.decide)) {
      const words = orNone(result.content).filter((c) => c && isText(c.text)).map((c) => c.text).join('\n');
      say((error ? 'Nothing can be answered here. ' : 'The client passed no question to this card. Look with: packs-mcp approvals\n') + words);
      return;
    }
    for (const question of about.questions) {
      if (!isWhole(question) || !isText(question.secret)) {
        say('The client passed a question to this card that it cannot show. Look with: packs-mcp approvals');
        continue;
      }
      const {secret} = question;
      show(`call ${secret}`, question, '', async (decision) => {
        const done = await request('tools/call', {name: about.decide, arguments: {secret, decision}});
        const {recorded} = done.structuredContent || {};
        return recorded === true && !done.isError ? '' : 'Nothing was recorded: it was answered elsewhere before, or is over.';
      });
    }
    if (about.questions.length === 0) say('No call waits for you.');
  }

  // show draws a question, or text in place of its facts. send passes an answer on,
  // and returns why it did not count; empty: it did.
  function show(name, question, text, send) {
    if (cards.has(name)) return;
    const id = `card-${cards.size}`;
    const node = el('article', {className: 'card', 'aria-labelledby': id});
    const problem = el('p', {className: 'problem', role: 'alert', hidden: true});
    const card = {node, question, over: false, busy: false, inputs: [], problem, send};
    cards.set(name, card);
    const drawn = draw(question, {id, values: new Map(), open: new Set(), choose: (value, e) => press(card, value, e)});
    card.inputs = drawn.inputs;
    const parts = [el('h2', {id}, ...plain(question.card.title))];
    if (text) parts.push(el('pre', {className: 'message', tabIndex: 0, 'aria-label': 'The question'}, ...plain(text)));
    if (isText(question.limit) && question.limit) parts.push(el('p', {className: 'limit'}, ...plain(question.limit)));
    const after = drawn.parts.findIndex((p) => p.className === 'answers') + 1;
    node.append(...parts, ...drawn.parts.slice(0, after), problem, ...drawn.parts.slice(after));
    if (isText(question.see) && question.see) node.append(el('p', {className: 'see'}, 'In a terminal: ', el('code', {}, ...plain(question.see))));
    if (node.querySelectorAll('.facts dd').length !== question.card.facts.length) {
      // Not one fact is left out without a word.
      for (const button of node.querySelectorAll('.answers button:not(.deny)')) button.remove();
      node.append(el('p', {className: 'limit'}, 'This card cannot show all of the question, so it cannot be allowed here. Look with: packs-mcp approvals'));
    }
    list.append(node);
    say('');
    settle();
    const left = Date.parse(question.expires) - Date.now();
    if (left < 2 ** 31) setTimeout(() => finish(card, 'Expired. Ask the model to try again.'), Math.max(0, left));
  }

  // finish has a card say that it is over.
  function finish(card, words) {
    if (card.over) return;
    card.over = true;
    card.node.className = 'card over';
    card.node.replaceChildren(card.node.querySelector('h2'), el('p', {className: 'farewell', role: 'status'}, ...plain(words)));
  }

  function complain(card, words) {
    card.problem.replaceChildren(...plain(words));
    card.problem.hidden = !words;
    settle(); // what is below it moves
  }

  // press takes an answer, and only from a person: a script's click is not trusted.
  async function press(card, value, e) {
    if (!e.isTrusted || card.over || card.busy || performance.now() < usable || document.visibilityState !== 'visible') return;
    const values = {};
    if (value !== 'deny') {
      for (const input of card.inputs) {
        if (input.value.trim() === '') {
          complain(card, `Fill in \u201c${input.labels[0].textContent}\u201d first, or deny the call.`);
          input.focus();
          return;
        }
        values[input.name] = input.value;
      }
    }
    card.busy = true;
    card.node.classList.add('sent');
    complain(card, '');
    try {
      const why = await card.send(value, values);
      finish(card, why || (value === 'deny' ? 'You denied it.' : 'You allowed it.'));
    } catch (err) {
      card.busy = false;
      card.node.classList.remove('sent');
      complain(card, `It was not answered: ${err.message}`);
      return;
    }
    // The model does not know otherwise that it can go on.
    const waits = [...cards.values()].some((c) => !c.over);
    if (!waits && host.message && card.question.secret) {
      request('ui/message', {role: 'user', content: [{type: 'text', text: 'I answered on the approval card. Go on.'}]}).catch(() => {});
    }
  }

  // settle holds clicks back for a moment, after something appeared or moved.
  function settle() {
    usable = performance.now() + SETTLE;
    for (const {node, over} of cards.values()) if (!over) node.classList.add('settling');
    setTimeout(() => {
      if (performance.now() < usable) return;
      for (const {node} of cards.values()) node.classList.remove('settling');
    }, SETTLE + 20);
  }
  document.addEventListener('visibilitychange', settle);

  // --- the beginning -----------------------------------------------------------

  let height = 0;
  new ResizeObserver(() => {
    const now = Math.ceil(document.documentElement.getBoundingClientRect().height);
    if (now === height) return;
    height = now;
    settle();
    if (origin !== null) notify('ui/notifications/size-changed', {height});
  }).observe(document.documentElement);

  request('ui/initialize', {
    protocolVersion: VERSION, appInfo: {name: 'packs-mcp approval', version: '1'},
    appCapabilities: {availableDisplayModes: ['inline'], elicitation: {}},
  }).then((result) => {
    host = result.hostCapabilities || {};
    dress(result.hostContext || {});
    notify('ui/notifications/initialized', {});
    notify('ui/notifications/size-changed', {height});
  }, (err) => say(`The client did not open this card: ${err.message}`));
})();
