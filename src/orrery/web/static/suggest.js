// Suggestions below an input with data-suggest: arrows choose, Enter takes, Escape closes; without them the form works.
"use strict";

for (const input of document.querySelectorAll("[data-suggest]")) {
  const list = document.getElementById(input.getAttribute("aria-controls"));
  let at = -1, asked = 0, timer = 0;

  const close = () => {
    at = -1;
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };

  const mark = (next) => {
    const options = [...list.children];
    at = (next + options.length + 1) % (options.length + 1);  // the place after the last is the input itself
    options.forEach((option, i) => option.setAttribute("aria-selected", String(i === at)));
    if (at < options.length) { input.setAttribute("aria-activedescendant", options[at].id); options[at].scrollIntoView({ block: "nearest" }); }
    else { input.removeAttribute("aria-activedescendant"); at = -1; }
  };

  const take = (option) => {
    input.value = option.dataset.query;
    close();
    input.form.requestSubmit();
  };

  const show = (found) => {
    list.replaceChildren(...found.map((one, i) => {
      const option = document.createElement("li"), kind = document.createElement("small");
      option.id = `${list.id}-${i}`;
      option.setAttribute("role", "option");
      option.setAttribute("aria-selected", "false");
      option.dataset.query = one.query;
      kind.textContent = one.kind === "paper" ? "paper" : `${one.kind}, ${one.num} paper${one.num === 1 ? "" : "s"}`;
      option.append(one.text, " ", kind);
      return option;
    }));
    list.hidden = !found.length;
    at = -1;
    input.setAttribute("aria-expanded", String(found.length > 0));
    input.removeAttribute("aria-activedescendant");
  };

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const turn = ++asked, answer = await fetch(`${input.dataset.suggest}&q=${encodeURIComponent(input.value)}`).catch(() => null);
      if (answer?.ok && turn === asked && document.activeElement === input) { show(await answer.json()); }
    }, 120);
  });
  input.addEventListener("keydown", (event) => {
    if (list.hidden) { return; }
    if (event.key === "ArrowDown") { event.preventDefault(); mark(at + 1); }
    else if (event.key === "ArrowUp") { event.preventDefault(); mark(at < 0 ? list.children.length - 1 : at - 1); }
    else if (event.key === "Escape") { event.preventDefault(); close(); }
    else if (event.key === "Enter") { if (at >= 0) { event.preventDefault(); take(list.children[at]); } else { close(); } }
  });
  list.addEventListener("pointerdown", (event) => { event.preventDefault(); const option = event.target.closest("li"); if (option) { take(option); } });
  input.addEventListener("blur", () => { ++asked; close(); });
}
