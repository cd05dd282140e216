// Words of the field, marked in headings and tables; their definitions (TERMS) on hover, focus and touch.
"use strict";

const WHERE = "th, dt, caption, figcaption, h2, h3, legend, .label";
const NOT_IN = "a, button, summary, label, svg, code, .term";
const SPELLED = new RegExp(
  "(?<![\\w$/])(" + Object.keys(TERMS).sort((a, b) => b.length - a.length)
    .map((word) => word.replace(/[$/.*+?^()[\]{}|\\]/g, "\\$&")).join("|") + ")(?![\\w/])", "i");
const tip = Object.assign(document.createElement("div"), { id: "tip", className: "tip", hidden: true });
tip.setAttribute("role", "tooltip");
document.body.append(tip);
const stops = new Set();

function define(part) {
  for (const place of part.querySelectorAll(WHERE)) {
    if (place.querySelector(".term") || place.closest(NOT_IN)) { continue; }
    const walk = document.createTreeWalker(place, NodeFilter.SHOW_TEXT,
      (node) => node.parentElement.closest(NOT_IN) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
      const found = SPELLED.exec(node.data);
      if (found) { mark(node.splitText(found.index), found[0]); break; }
    }
  }
}

// The first of each word on a page is a stop of the keyboard; the others answer the pointer alone.
function mark(node, word) {
  node.splitText(word.length);
  const term = Object.assign(document.createElement("span"), { className: "term", textContent: word });
  const meaning = TERMS[word.toLowerCase()];
  term.dataset.meaning = meaning;
  if (!stops.has(meaning)) { stops.add(meaning); term.tabIndex = 0; }
  node.replaceWith(term);
}

let leaving = 0;
function show(term) {
  clearTimeout(leaving);
  tip.textContent = term.dataset.meaning;
  tip.hidden = false;
  term.setAttribute("aria-describedby", "tip");
  const at = term.getBoundingClientRect(), size = tip.getBoundingClientRect();
  const left = Math.max(8, Math.min(at.left, innerWidth - size.width - 8));
  const top = at.bottom + 6 + size.height < innerHeight ? at.bottom + 6 : Math.max(8, at.top - size.height - 6);
  tip.style.left = `${left}px`;
  tip.style.top = `${top}px`;
}

function hide() {
  tip.hidden = true;
  document.querySelector(".term[aria-describedby]")?.removeAttribute("aria-describedby");
}

const over = (event) => {
  const term = event.target.closest?.(".term");
  if (term) { hide(); show(term); } else if (event.target === tip) { clearTimeout(leaving); }
};
const away = (event) => {
  if (event.target === tip || event.target.closest?.(".term")) { clearTimeout(leaving); leaving = setTimeout(hide, 150); }
};
document.addEventListener("mouseover", over);
document.addEventListener("focusin", over);
document.addEventListener("mouseout", away);
document.addEventListener("focusout", away);
document.addEventListener("click", over);
document.addEventListener("keydown", (event) => { if (event.key === "Escape") { hide(); } });
document.addEventListener("scroll", hide, { capture: true, passive: true });
document.addEventListener("htmx:afterSwap", (event) => define(event.detail.target));
for (const part of document.querySelectorAll("[aria-live]")) {
  new MutationObserver(() => define(part)).observe(part, { childList: true });
}
define(document);
