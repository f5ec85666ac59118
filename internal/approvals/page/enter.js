'use strict';
// Cookies go to every port of this host; what is stored here stays with this
// one, and with this tab: a tab that another program once filled at this address
// does not see it. The page needs both.
try {
  sessionStorage.setItem('packs-key', document.querySelector('meta[name="packs-key"]').content);
  location.replace('/');
} catch {
  document.getElementById('state').hidden = true;
  document.getElementById('stuck').hidden = false;
}
