'use strict';
// Cookies go to every port of this host; what is stored here stays with this
// one. The page needs both.
try {
  localStorage.setItem('packs-key', document.querySelector('meta[name="packs-key"]').content);
  location.replace('/');
} catch {
  document.getElementById('state').textContent =
    'This browser lets the page store nothing, so it cannot be used. Answer in a terminal: packs-mcp approvals';
}
