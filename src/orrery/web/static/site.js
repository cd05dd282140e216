// The static site's search, and the field that narrows the groups of a long table.
"use strict";

for (const one of document.querySelectorAll("[data-script]")) { one.hidden = false; }
const narrow = document.querySelector("[data-narrow]"), fold = document.querySelector("[data-fold]"), groups = [...document.querySelectorAll("details.group")];
const openAll = (isOpen) => {
  for (const group of groups) { group.open = isOpen; }
  fold.setAttribute("aria-pressed", String(isOpen));
};
fold?.addEventListener("click", () => openAll(fold.getAttribute("aria-pressed") !== "true"));
narrow?.addEventListener("input", () => {
  const words = narrow.value.toLowerCase().split(/\s+/).filter(Boolean);
  let num = 0;
  for (const group of groups) {
    const rows = [...group.querySelectorAll("tbody tr")];
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
    const shown = rows.filter((row) => !row.hidden).length;
    group.hidden = !shown;
    group.open = Boolean(words.length && shown);
    num += shown;
  }
  document.getElementById("narrow-words").textContent = words.length ? `${num} found` : "";
});

const box = document.querySelector("[data-search]");
if (box && typeof INDEX !== "undefined") {
  const list = document.getElementById("found"), folded = INDEX.map(([title, path, kind, words]) => ({ title, path, kind, head: title.toLowerCase(), text: `${title} ${kind} ${words}`.toLowerCase() }));
  const show = () => {
    const words = box.value.toLowerCase().split(/[\s-]+/).filter(Boolean);
    const found = words.length ? folded.filter((one) => words.every((word) => one.text.includes(word))) : [];
    const merit = (one) => words.filter((word) => one.head.includes(word)).length;
    found.sort((a, b) => merit(b) - merit(a) || a.title.length - b.title.length);
    list.replaceChildren(...found.slice(0, 60).map((one) => {
      const item = document.createElement("li"), link = document.createElement("a"), kind = document.createElement("span");
      item.className = "paper"; link.href = one.path; link.textContent = one.title; kind.className = "dim"; kind.textContent = ` ${one.kind}`;
      item.append(link, kind);
      return item;
    }));
    document.getElementById("found-words").textContent = words.length ? `${found.length} found` : "";
  };
  box.value = new URLSearchParams(location.search).get("q") ?? "";
  box.addEventListener("input", show);
  show();
}
