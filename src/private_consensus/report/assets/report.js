// Unfold the targets of links, and everything for printing.
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

  let opened = [];
  window.addEventListener("beforeprint", () => {
    for (const image of document.images) image.loading = "eager";
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const part of opened) part.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const part of opened) part.open = false;
  });
})();
