// The static site's search, and the field that narrows a table.
"use strict";

const narrow = document.querySelector("[data-narrow]");
narrow?.addEventListener("input", () => {
  const words = narrow.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of document.querySelectorAll("tbody tr")) {
    const text = row.textContent.toLowerCase();
    row.hidden = !words.every((word) => text.includes(word));
  }
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
