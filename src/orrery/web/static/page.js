// What htmx does not do by itself: errors in words, a spoken word when a part has changed, PNG of a drawing.
"use strict";

document.addEventListener("htmx:beforeSwap", (event) => {
  // A mistake (422) is an answer: it says what to write instead.
  if (event.detail.xhr.status === 422) { event.detail.shouldSwap = true; event.detail.isError = false; }
  // Drawings are taken out at once: htmx would take leave of each of their thousands of nodes with an event of its own.
  if (event.detail.shouldSwap) { for (const drawing of event.detail.target.querySelectorAll("svg")) { drawing.remove(); } }
});

// Back and forward load the page of the address anew (htmx does that): an address is one step, once answered …
document.addEventListener("htmx:beforeHistoryUpdate", (event) => {
  const { history } = event.detail;
  if (history.path === location.pathname + location.search) { history.type = "replace"; }
});

// … an answer to what was asked before such a step comes too late …
let numSteps = 0;
addEventListener("popstate", () => { numSteps += 1; });
document.addEventListener("htmx:beforeRequest", (event) => { event.detail.xhr.numSteps = numSteps; });
document.addEventListener("htmx:beforeOnLoad", (event) => {
  if (history.state?.htmx && event.detail.xhr.numSteps !== numSteps) { event.preventDefault(); }
});

// … and a step that was taken while the page still loaded was heard by nobody.
document.addEventListener("DOMContentLoaded", () => {
  const [loaded, shown] = [performance.getEntriesByType("navigation")[0].name, location.href].map((at) => at.split("#")[0]);
  if (history.state?.htmx && loaded !== shown) { location.reload(); }
});

// On a phone the answer comes first: the form that it was asked with and what explains it further are folded.
const foldOnPhone = (part) => {
  if (!matchMedia("(max-width: 40rem)").matches) { return; }
  for (const one of part.querySelectorAll?.("details.on-desk") ?? []) { one.open = false; }
};
document.addEventListener("DOMContentLoaded", () => foldOnPhone(document));
document.addEventListener("htmx:afterSwap", (event) => foldOnPhone(event.detail.target));

// A link to a heading that stands on a fold opens it.
const openLinked = () => {
  const fold = document.getElementById(decodeURIComponent(location.hash.slice(1)))?.closest("details");
  if (fold) { fold.open = true; }
};
document.addEventListener("DOMContentLoaded", openLinked);
addEventListener("hashchange", openLinked);

// A command line may break between its words, never inside a flag.
const FLAG = /((?<=^|\s)--?[a-z][\w-]*)/;
const holdFlags = (part) => {
  for (const line of part.querySelectorAll?.(".copy pre") ?? []) {
    line.replaceChildren(...line.textContent.split(FLAG).map((piece, i) => {
      if (i % 2 === 0) { return piece; }
      const flag = document.createElement("span");
      flag.className = "flag"; flag.textContent = piece;
      return flag;
    }));
  }
};
document.addEventListener("DOMContentLoaded", () => holdFlags(document));
document.addEventListener("htmx:afterSwap", (event) => holdFlags(event.detail.target));

const say = (words) => { document.getElementById("said").textContent = words; };

document.addEventListener("htmx:afterSwap", (event) => {
  const words = event.detail.target.querySelector?.("[data-say]")?.dataset.say;
  if (words) { say(words); }
});

for (const kind of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) {
  document.addEventListener(kind, () => say("The server did not answer."));
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-png]");
  if (!button) { return; }
  const drawing = document.querySelector(button.dataset.png);
  if (drawing) { download(await png(drawing), button.dataset.name || "orrery.png"); }
});

async function png(drawing) {
  const copy = drawing.cloneNode(true), box = drawing.viewBox.baseVal, scale = 2;
  copy.setAttribute("width", box.width);
  copy.setAttribute("height", box.height);
  const image = new Image();
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(new XMLSerializer().serializeToString(copy));
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: box.width * scale, height: box.height * scale });
  const at = canvas.getContext("2d");
  at.fillStyle = getComputedStyle(document.body).backgroundColor;
  at.fillRect(0, 0, canvas.width, canvas.height);
  at.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

function download(blob, name) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// Copy a block, <button data-copy="#id">, or the page's address, <button data-copy="">.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) { return; }
  const place = button.dataset.copy;
  await navigator.clipboard.writeText(place ? document.querySelector(place).textContent : location.href);
  say("Copied.");
});

// Addresses without blank fields: <form data-tidy hx-get=…>.
document.addEventListener("htmx:configRequest", (event) => {
  const { formData, elt } = event.detail;
  if (!elt.matches("form[data-tidy]")) { return; }
  for (const [name, value] of [...formData.entries()]) { if (value === "") { formData.delete(name); } }
});

// A menu closes by Escape and by a click beside it.
document.addEventListener("click", (event) => { for (const menu of document.querySelectorAll("details.menu[open]")) { if (!menu.contains(event.target)) { menu.open = false; } } });
document.addEventListener("keydown", (event) => { if (event.key !== "Escape") { return; } for (const menu of document.querySelectorAll("details.menu[open]")) { menu.open = false; menu.querySelector("summary").focus(); } });
