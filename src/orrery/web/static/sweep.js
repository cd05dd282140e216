// The slider of a sweep: it says its value in words, moves the mark in every chart at once, and keeps its place in the address.
"use strict";

const PAUSE_MS = 50;
let pending = 0;

// At most one request in a pause, and always one for the last value: a throttle of htmx would drop what comes within it.
function ask(slider) {
  pending = 0;
  htmx.trigger(slider, "move");
}

document.addEventListener("input", (event) => {
  if (event.target.id !== "sweep-at") { return; }
  moved(event.target);
  pending ||= setTimeout(ask, PAUSE_MS, event.target);
});

document.addEventListener("change", (event) => {
  if (event.target.id !== "sweep-at") { return; }
  moved(event.target);
  const here = new URL(location.href);
  here.searchParams.set("at", event.target.value);
  history.replaceState(history.state, "", here);
});

function moved(slider) {
  const words = JSON.parse(slider.dataset.words)[slider.value], value = Number(JSON.parse(slider.dataset.values)[slider.value]);
  slider.setAttribute("aria-valuetext", words);
  document.getElementById("sweep-value").textContent = words;
  for (const mark of document.querySelectorAll("#sweep [data-scale]")) {
    const { start, end, low, high, log, turn } = JSON.parse(mark.dataset.scale), as = log ? Math.log : Number;
    const x = start + (end - start) * (as(value) - as(low)) / (as(high) - as(low));
    if (!Number.isFinite(x)) { continue; }
    const text = mark.querySelector("text"), isLeft = x > turn;
    mark.querySelector("path").setAttribute("transform", `translate(${x - Number(mark.dataset.at)} 0)`);
    text.textContent = words;
    text.setAttribute("x", isLeft ? x - 5 : x + 5);
    text.classList.toggle("orr-e", isLeft);
  }
}
