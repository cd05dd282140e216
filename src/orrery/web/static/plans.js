// A point of the drawing and its row light up together.
"use strict";

const lit = (event, on) => {
  const id = event.target.closest?.("[data-id]")?.dataset.id;
  if (!id) { return; }
  for (const one of document.querySelectorAll(`[data-id="${CSS.escape(id)}"]`)) { one.classList.toggle("lit", on); }
};

for (const [kind, on] of [["mouseover", true], ["mouseout", false], ["focusin", true], ["focusout", false]]) {
  document.addEventListener(kind, (event) => lit(event, on));
}
