'use strict';
// A card: a question as facts, drawn. The approval page and the card in a client's
// chat share this file, so it knows neither: no address, no keys, no queue. It sets
// everything as text, never as markup.
const packsCard = (() => {
  // A longer text is folded; what is shown of it says how much is not.
  const LONG = 360, HEAD = 220, TAIL = 80;
  const SECTIONS = {
    change: 'What changed', access: 'What it may read and change', pack: 'The pack',
    run: 'Exactly what runs', call: 'What was asked for', '': 'Other facts',
  };
  const VERBS = {run: 'Run', exec: 'Run', open: 'Open', read: 'Read', enable: 'Enable'};
  // Letters that are written from right to left.
  const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]+/u;

  // el makes an element; properties with a dash, and role, are attributes.
  function el(tag, props, ...children) {
    const node = document.createElement(tag);
    for (const [k, v] of Object.entries(props || {})) {
      if (k === 'role' || k.includes('-')) node.setAttribute(k, v);
      else node[k] = v;
    }
    node.append(...children);
    return node;
  }

  // plain returns nodes for a text that others chose. Letters that are written from
  // right to left would take the signs between them along and so reorder a line;
  // each run of them is isolated, and all else stays where it is.
  function plain(text) {
    const nodes = [];
    for (let rest = text; rest;) {
      const found = RIGHT_TO_LEFT.exec(rest);
      if (!found) { nodes.push(rest); break; }
      if (found.index) nodes.push(rest.slice(0, found.index));
      nodes.push(el('bdi', {}, found[0]));
      rest = rest.slice(found.index + found[0].length);
    }
    return nodes;
  }

  // typed is plain, with each word of a command in one piece where it fits: a line
  // that breaks after the dashes of an option reads as another command.
  function typed(text) {
    return text.split(/( +)/).flatMap((word, i) => (i % 2 ? [word] : word ? [el('span', {className: 'word'}, ...plain(word))] : []));
  }

  // folded draws a text with draw, with the middle of a long text behind a button.
  function folded(text, draw) {
    const letters = text.length > LONG ? Array.from(text) : [];
    if (letters.length <= LONG) return draw(text);
    const hidden = letters.length - HEAD - TAIL;
    const more = el('button', {type: 'button', className: 'unfold'}, `Show all: ${hidden.toLocaleString('en')} more characters`);
    const node = el('span', {}, ...draw(letters.slice(0, HEAD).join('')), '\u2026 ', more, '\u2026', ...draw(letters.slice(-TAIL).join('')));
    more.addEventListener('click', () => {
      node.replaceChildren(...draw(text));
      node.tabIndex = -1;
      node.focus({preventScroll: true});
    });
    return [node];
  }

  const weight = (w) => (w === 'danger' || w === 'notice' ? w : 'plain');

  // label is what stands on the button of a choice.
  function label(question, choice) {
    const verb = VERBS[question.kind] || 'Allow';
    switch (choice.value) {
      case 'once': return `${verb} ${choice.lasts ? 'from now on' : 'once'}`;
      case 'chat': return 'This chat';
      case 'always': return 'Always';
      case 'deny': return question.answered ? 'Deny after all' : 'Deny';
      default: return choice.title;
    }
  }

  function drawMarks(marks) {
    const words = {danger: 'Careful: ', notice: 'Note: ', plain: ''};
    return el('ul', {className: 'marks', 'aria-label': 'What matters'}, ...marks.map((m) => {
      const w = weight(m.weight);
      return el('li', {className: `mark ${w}`}, el('span', {className: 'unseen'}, words[w]), ...plain(m.text));
    }));
  }

  // dangers draws the marks that not even a closed card leaves out.
  function dangers(card) {
    const these = (card.marks || []).filter((m) => m.weight === 'danger');
    return these.length ? [drawMarks(these)] : [];
  }

  function drawFacts(facts) {
    const list = el('dl', {className: 'facts'});
    let last = null, row = null;
    for (const f of facts) {
      if (!row || f.label !== last) {
        row = el('div', {}, el('dt', {}, ...plain(f.label)));
        list.append(row);
      }
      last = f.label;
      row.append(el('dd', {className: weight(f.weight)}, ...folded(f.value, plain)));
    }
    return list;
  }

  function section(name, content, className, open) {
    const node = el('details', {className}, el('summary', {}, ...plain(name)), content);
    node.open = open;
    return node;
  }

  // draw returns the parts of a card for question, in the order in which they are
  // read, and the inputs among them. A question has card, kind, choices, fields and
  // answered. options: id, which is unique in the document; choose, called with a
  // choice's value and the event; values, what was typed by a field's name; open,
  // the names of the details that are open, which draw keeps up to date.
  function draw(question, options) {
    const {card} = question, {id, choose, values, open} = options;
    const parts = [];
    if (card.command) parts.push(el('p', {className: 'command'}, el('code', {}, ...folded(card.command, typed))));
    if (card.marks && card.marks.length) parts.push(drawMarks(card.marks));
    const marked = parts.length;

    const inputs = [];
    for (const field of question.answered ? [] : question.fields || []) {
      const input = el('input', {name: field.name, id: `${id}-${field.name}`, autocomplete: 'off', spellcheck: false, value: values.get(field.name) || ''});
      inputs.push(input);
      parts.push(el('div', {className: 'field'}, el('label', {htmlFor: input.id}, ...plain(field.title)), input));
    }

    const group = el('div', {className: 'answers', role: 'group', 'aria-label': 'Your answer'});
    const about = el('ul', {className: 'covers', 'aria-label': 'What each answer covers'});
    for (const choice of question.choices || []) {
      if (question.answered && choice.value !== 'deny') continue;
      const name = label(question, choice);
      const button = el('button', {
        type: 'button', className: {once: 'allow', deny: 'deny'}[choice.value] || 'more', 'data-choice': choice.value,
        'aria-label': `${name}. ${card.title}`,
      }, name);
      button.addEventListener('click', (e) => choose(choice.value, e));
      group.append(button);
      if (choice.value === 'deny' || !choice.means) continue;
      const means = el('li', {id: `${id}-${choice.value}`}, ...plain(choice.means));
      button.setAttribute('aria-describedby', means.id);
      about.append(means);
    }
    parts.push(group);
    if (about.childElementCount) parts.push(about);

    const changed = el('div', {className: 'details changed'}), details = el('div', {className: 'details'});
    const add = (to, name, content, className, byItself) => {
      const node = section(name, content, className, open.has(name) || byItself && !open.has(`not ${name}`));
      node.addEventListener('toggle', () => {
        open.delete(node.open ? `not ${name}` : name);
        open.add(node.open ? name : `not ${name}`);
      });
      to.append(node);
    };
    const facts = (key) => (card.facts || []).filter((f) => (Object.hasOwn(SECTIONS, f.section) ? f.section : '') === key);
    const quotes = () => {
      for (const q of card.quotes || []) add(details, q.who, el('blockquote', {}, ...plain(q.text)), 'quote', false);
    };
    for (const [key, name] of Object.entries(SECTIONS)) {
      if (key === 'run') quotes();
      const these = facts(key);
      // What changed since an answer is why the question is asked again, so it is read
      // before the next one.
      if (these.length) add(key === 'change' ? changed : details, name, drawFacts(these), '', key === 'change');
    }
    if (changed.childElementCount) parts.splice(marked, 0, changed);
    if (details.childElementCount) parts.push(details);
    return {parts, inputs};
  }

  return {el, plain, draw, dangers};
})();
