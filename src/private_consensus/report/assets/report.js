// Unfold the targets of links.
"use strict";

(() => {
  // Open the folded parts of the page that contain the target of a link.
  function unfoldTarget() {
    const name = decodeURIComponent(location.hash.slice(1));
    const target = name && document.getElementById(name);
    if (!target) return;
    for (let part = target.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
    target.scrollIntoView({ behavior: "instant" });
  }

  unfoldTarget();
  window.addEventListener("hashchange", unfoldTarget);
})();
