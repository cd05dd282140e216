// Words of the field, marked in headings and tables; their definitions (TERMS) on hover, focus and touch. What is worked
// by itself (a field, a heading that unfolds, a heading that sorts) shows the definition of its word, and its own help.
"use strict";

const WHERE = "th, dt, caption, figcaption, h2, h3, legend, .label";
const NOT_IN = "a, button, summary, label, svg, code, .term";
const SPELLED = new RegExp(
  "(?<![\\w$/])(" + Object.keys(TERMS).sort((a, b) => b.length - a.length)
    .map((word) => word.replace(/[$/.*+?^()[\]{}|\\]/g, "\\$&")).join("|") + ")(?![\\w/])", "i");
const WORKED = "label, summary, th a, th button, td[data-label]";
const FIELDS = "input, select, textarea";
const tip = Object.assign(document.createElement("div"), { id: "tip", className: "tip", hidden: true });
tip.setAttribute("role", "tooltip");
document.body.append(tip);
const isStop = (meaning) => [...document.querySelectorAll(".term[tabindex]")].some((one) => one.dataset.meaning === meaning);

function meaningIn(text) { return TERMS[(SPELLED.exec(text) || [""])[0].toLowerCase()] || ""; }

function define(part) {
  for (const one of part.querySelectorAll("label[title], label [title]")) {
    one.closest("label").dataset.help = one.title;
    one.removeAttribute("title");
  }
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
  if (!isStop(meaning)) { term.tabIndex = 0; }
  node.replaceWith(term);
}

// What stands there and what it means: a marked word, or the word and the help of what is worked.
function meant({ target, type }) {
  const term = target.closest?.(".term"), isField = target.matches?.(FIELDS);
  if (term) { return [term, term.dataset.meaning]; }
  if (isField && !type.startsWith("focus")) { return []; }  // a pointer that works a field wants no words over it
  const one = isField ? target.labels?.[0] : target.closest?.(WORKED);
  if (!one || (one.matches("td") && one.closest("table").tHead?.getClientRects().length)) { return []; }
  const meaning = one.matches("td") ? meaningIn(one.dataset.label) : meaningIn(one.textContent);
  return [one, [meaning, one.dataset.help].filter(Boolean).join(" ")];
}

let leaving = 0, isByKey = false;
function show(place, meaning) {
  clearTimeout(leaving);
  tip.textContent = meaning;
  tip.hidden = false;
  if (place.matches(".term")) { place.setAttribute("aria-describedby", "tip"); }
  const at = place.getBoundingClientRect(), size = tip.getBoundingClientRect();
  const left = Math.max(8, Math.min(at.left, innerWidth - size.width - 8));
  const above = Math.max(8, at.top - size.height - 6);
  const isBelow = !place.matches("label") && at.bottom + 6 + size.height < innerHeight;
  tip.style.left = `${left}px`;
  tip.style.top = `${isBelow ? at.bottom + 6 : above}px`;
}

function hide() {
  tip.hidden = true;
  document.querySelector(".term[aria-describedby]")?.removeAttribute("aria-describedby");
}

const over = (event) => {
  if (event.target === tip) { clearTimeout(leaving); return; }
  if (event.type === "focusin" && !isByKey && !event.target.matches?.(".term")) { return; }
  const [place, meaning] = meant(event);
  if (place && meaning) { hide(); show(place, meaning); }
};
const away = (event) => {
  if (event.target === tip || meant(event)[0]) { clearTimeout(leaving); leaving = setTimeout(hide, 150); }
};
document.addEventListener("keydown", () => { isByKey = true; }, true);
document.addEventListener("pointerdown", () => { isByKey = false; }, true);
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
