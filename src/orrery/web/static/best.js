// What the reader does: filters, the picker, the point's card, the ranking, sharing. All of it stands in the address.
"use strict";

const $ = (id) => document.getElementById(id);
const NAMES = JSON.parse($("names").textContent);
let left = 0;
const isComputing = () => left > 0;

function chosen() {
  const points = pointsOf(state.device);
  return state.at !== null && points[state.at] ? points[state.at] : bestOf(state.device) ?? points[0] ?? null;
}

const interval = (low, high, unit = "") => `${low} to ${high}${unit}`;

function card() {
  const p = chosen(), place = $("point");
  if (!p) { place.innerHTML = `<p>${isComputing() ? "Computing …" : "Choose an accelerator."}</p>`; return; }
  const one = DEVICES[p.device], query = new URLSearchParams(settingsOf(p)), isRate = state.y === "rate" || p.usd === null;
  const verdict = p.isMet ? '<span class="badge good">meets SLO</span>' : `<span class="badge warn">misses ${p.tpot_ms > state.tpot ? "TPOT" : "TTFT"}</span>`;
  const rows = [
    ["TTFT", `<b>${short(p.ttft_ms)} ms</b> <small>${interval(short(p.ttft_ms * p.ttft_low / 100), short(p.ttft_ms * p.ttft_high / 100))}</small>`, "Time to first token"],
    ["TPOT", `<b>${short(p.tpot_ms)} ms</b> <small>${interval(short(p.tpot_ms * p.tpot_low / 100), short(p.tpot_ms * p.tpot_high / 100))}</small>`, "Time per output token"],
    ["One user", `<b>${short(p.x)}</b> <small>tokens/s</small>`, "Output tokens per second of one request"],
    isRate ? ["Cost", p.usd === null ? "<small>no price known</small>" : `<b>${dollars(p.usd)}</b> <small>/M tokens</small>`, one.priceNote] : ["Rate", `<b>${short(p.rate)}</b> <small>tokens/s/device</small>`, "Output tokens per second and device"],
    ["Power", `<b>${short(p.watts)} W</b> <small>per device</small>`, "Mean power of one device, without its host"],
    ["Limited by", DATA.limits[p.bound_by], "What takes most of a step's time"],
  ];
  const runs = runsShown().filter((run) => run.device === p.device), isOpen = place.querySelector("details")?.open;
  place.innerHTML = `<h2><span class="sw${one.isCard ? " dash" : ""}" style="--c: var(--${one.hue})"></span>${escaped(one.title)} ${verdict}</h2>
    <p class="dim">${escaped(one.vendor)} · ${layoutOf(p)}, ${p.size} device${p.size > 1 ? "s" : ""} · concurrency ${p.concurrency}</p>
    <p><span class="big">${isRate ? short(p.rate) : dollars(p.usd)}</span> <span class="dim">${isRate ? "tokens/s/device" : "per M output tokens"}</span><br>
    <small>${isRate ? interval(short(p.rateLow), short(p.rateHigh)) : interval(dollars(p.usdLow), dollars(p.usdHigh))}, 80 %</small></p>
    <dl>${rows.map(([name, value, about]) => `<div title="${escaped(about)}"><dt>${name}</dt><dd>${value}</dd></div>`).join("")}</dl>
    <p class="dim">${p.borrowed > 50 ? '<span class="badge warn">thin evidence</span> ' : ""}${p.borrowed ? `${p.borrowed} % of the time rests on constants of related devices` : "Rests on measured runs of this device"}</p>
    ${runs.length ? `<details${isOpen ? " open" : ""}><summary>${runs.length} published run${runs.length > 1 ? "s" : ""}</summary><ul class="runs">${runs.map((run) => `<li>${escaped(runWords(run))}</li>`).join("")}</ul></details>` : ""}
    <p class="acts">${DATA.isStatic ? '<button type="button" class="main" data-share="command">Copy the command</button>' : `<a class="button main" href="/design?${query}">Open estimate</a><a class="button" href="/design/why?${query}">Why</a>`}</p>`;
}

/** An 80 % interval as a bar on a common scale from zero; an arrow where it leaves the scale. */
function bar(low, value, high, most) {
  const at = (v) => Math.min(140, v / most * 140);
  if (low > most) { return '<svg viewBox="0 0 140 16" preserveAspectRatio="none" aria-hidden="true"><path d="M130 3l8 5-8 5" fill="none" stroke="var(--accent)" stroke-width="2"/></svg>'; }
  return `<svg viewBox="0 0 140 16" preserveAspectRatio="none" aria-hidden="true"><rect y="7.5" width="140" height="1" fill="var(--line)"/><rect x="${at(low)}" y="5" width="${at(high) - at(low)}" height="6" fill="var(--accent)" opacity=".28"/><rect x="${at(value) - 1}" y="2" width="2" height="12" fill="var(--accent)"/></svg>`;
}

function missing(key) {
  const points = rowsOf(key), least = (name) => short(Math.min(...points.map((p) => p[name])));
  return points.some((p) => p.tpot_ms <= state.tpot) ? `no layout meets this SLO: TTFT is ${short(Math.min(...points.filter((p) => p.tpot_ms <= state.tpot).map((p) => p.ttft_ms)))} ms at best` : `no layout meets this SLO: TPOT is ${least("tpot_ms")} ms at best`;
}

function ranking() {
  const rows = DATA.devices.filter((one) => isShown(one.key) && rowsOf(one.key).length).map((one) => ({ one, best: bestOf(one.key) }));
  const merit = ({ best }) => !best ? -2 : state.y === "rate" ? best.rate : best.usd === null ? -1 / best.rate : 1 / best.usd;
  rows.sort((a, b) => merit(b) - merit(a));
  const met = rows.filter((row) => row.best).map((row) => row.best), priced = met.filter((p) => p.usd !== null).sort((a, b) => a.usd - b.usd);
  const mostRate = Math.max(...met.map((p) => p.rateHigh)), mostUsd = Math.min(Math.max(...priced.map((p) => p.usdHigh)), (priced[priced.length >> 1]?.usd ?? 1) * 2.6);
  const name = (one) => `<th scope="row"><button type="button" data-device="${one.key}"><span class="sw${one.isCard ? " dash" : ""}" style="--c: var(--${one.hue})"></span>${escaped(one.title)}</button></th>`;
  let place = 0;
  $("rows").innerHTML = rows.map(({ one, best: p }) => !p ? `<tr><td></td>${name(one)}<td class="why" colspan="6">${missing(one.key)}</td></tr>` : `<tr class="${one.key === state.device ? "on" : ""}"><td class="dim">${place += 1}</td>${name(one)}<td class="lines">${layoutOf(p)} · concurrency ${p.concurrency} · TPOT ${short(p.tpot_ms)}&nbsp;ms · TTFT ${short(p.ttft_ms)}&nbsp;ms</td><td class="hide">${layoutOf(p)}</td><td class="number hide">${p.concurrency}</td><td class="number hide">${short(p.tpot_ms)} ms</td><td class="number hide">${short(p.ttft_ms)} ms</td><td class="number bars${state.y === "rate" ? "" : " off"}" data-unit="tokens/s"><div class="cell" title="80 %: ${interval(short(p.rateLow), short(p.rateHigh))}">${bar(p.rateLow, p.rate, p.rateHigh, mostRate)}<span>${short(p.rate)}</span></div></td><td class="number bars${state.y === "usd" ? "" : " off"}" data-unit="${p.usd === null ? "" : "per M"}">${p.usd === null ? '<span class="dim">no price known</span>' : `<div class="cell" title="80 %: ${interval(dollars(p.usdLow), dollars(p.usdHigh))}">${bar(p.usdLow, p.usd, p.usdHigh, mostUsd)}<span>${dollars(p.usd)}</span></div>`}</td></tr>`).join("");
  $("ranked-by").textContent = `${state.y === "rate" ? "Most tokens/s per device" : "Least $ per M output tokens"} with mean TTFT ≤ ${state.ttft} ms and mean TPOT ≤ ${state.tpot} ms; bars are 80 % intervals.`;
  const isLong = rows.length > 12;
  $("ranking").classList.toggle("short", isLong && !isEveryRowShown);
  $("all-rows").hidden = !isLong;
  $("all-rows").textContent = isEveryRowShown ? "Show the first 10" : `Show all ${rows.length}`;
  answer(met, priced);
}

let isEveryRowShown = false;
$("all-rows").addEventListener("click", () => { isEveryRowShown = !isEveryRowShown; ranking(); });

function answer(met, priced) {
  const cell = (title, p, value, unit, low, high) => `<div><dt>${title}: <b>${escaped(DEVICES[p.device].title)}</b></dt><dd class="v">${value} <span>${unit}</span></dd><dd>${interval(low, high)}, 80 % · ${layoutOf(p)} · TPOT ${short(p.tpot_ms)} ms${p.borrowed > 50 ? ' · <span class="warn">thin evidence</span>' : ""}</dd></div>`;
  const most = [...met].sort((a, b) => b.rate - a.rate)[0];
  const fast = shown().flatMap((key) => rowsOf(key)).filter((p) => p.isMet).sort((a, b) => b.x - a.x)[0];
  const cells = [];
  if (priced[0]) { cells.push(cell("Cheapest at this SLO", priced[0], dollars(priced[0].usd), "per M output tokens", dollars(priced[0].usdLow), dollars(priced[0].usdHigh))); }
  if (most) { cells.push(cell("Most per device", most, short(most.rate), "tokens/s/device", short(most.rateLow), short(most.rateHigh))); }
  if (fast) { cells.push(cell("Fastest for one user", fast, short(fast.x), "tokens/s/user", short(fast.xLow), short(fast.xHigh))); }
  $("answer").innerHTML = cells.join("") || `<div><dt>${isComputing() ? "Computing every accelerator" : "No accelerator meets this SLO"}</dt><dd class="v">${isComputing() ? "…" : "Raise TPOT or TTFT"}</dd></div>`;
}

/** The state as an address, without what the page opens with. */
function address() {
  const query = new URLSearchParams({ model: DATA.model }), usual = { engine: "vllm", traffic: "1k/1k" };
  for (const name of ["engine", "traffic"]) { if (DATA[name] !== usual[name]) { query.set(name, DATA[name]); } }
  if (state.bits !== DATA.usualBits) { query.set("bits", state.bits); }
  if (state.y !== "rate") { query.set("y", state.y); }
  if (state.ttft !== 1000) { query.set("ttft", state.ttft); }
  if (state.tpot !== 50) { query.set("tpot", state.tpot); }
  if (state.max !== DATA.maxDevices) { query.set("devices", state.max); }
  const off = [...new Set(DATA.devices.map((one) => one.vendor))].filter((vendor) => !state.vendors.has(vendor));
  if (off.length) { query.set("without", off.join(",")); }
  if (state.device) { query.set("device", state.device); }
  if (state.at !== null) { query.set("point", state.at); }
  return `${location.pathname}?${query}`;
}

function refresh(keeps = false) {
  known.clear();
  if (!shown().includes(state.device)) {
    const ranked = shown().map((key) => bestOf(key)).filter((p) => p && valueOf(p) !== null).sort((a, b) => state.y === "rate" ? b.rate - a.rate : a.usd - b.usd);
    state.device = ranked[0]?.device ?? shown()[0] ?? "";
    state.at = null;
  }
  draw();
  card();
  ranking();
  if (!keeps) { history.replaceState(null, "", address()); }
}

function read() {
  const query = new URLSearchParams(location.search), number = (name, usual) => Number(query.get(name)) > 0 ? Number(query.get(name)) : usual;
  state.bits = query.get("bits") ?? DATA.usualBits;
  state.y = query.get("y") === "usd" ? "usd" : "rate";
  state.ttft = number("ttft", 1000); state.tpot = number("tpot", 50); state.max = number("devices", DATA.maxDevices);
  if (DATA.isStatic) {
    if (DATA.engines[query.get("engine")]) { DATA.engine = $("engine").value = query.get("engine"); }
    useEngine();
  }
  for (const vendor of (query.get("without") ?? "").split(",")) { state.vendors.delete(vendor); }
  state.device = query.get("device") ?? ""; state.at = query.has("point") ? number("point", 0) : null;
  if (!DEVICES[state.device]) { state.device = ""; }
  if (DATA.isStatic) { $("slo-problem").textContent = mistakes(query).join(" "); }
  $("ttft").value = state.ttft; $("tpot").value = state.tpot; $("devices").value = state.max;
  for (const one of $("y").children) { one.setAttribute("aria-pressed", one.dataset.v === state.y); }
  for (const one of $("bits").children) { one.setAttribute("aria-pressed", one.dataset.v === state.bits); }
  for (const one of $("vendor").children) { one.setAttribute("aria-pressed", state.vendors.has(one.dataset.v)); }
}

/** Words of the address that nothing here knows; where there is a server, it refuses them. */
function mistakes(query) {
  const known = { bits: [...$("bits").children].map((one) => one.dataset.v), y: ["rate", "usd"], devices: [...$("devices").options].map((one) => one.value),
    engine: Object.keys(DATA.engines), device: Object.keys(DEVICES) };
  return Object.entries(known).filter(([name, words]) => query.get(name) && !words.includes(query.get(name)))
    .map(([name, words]) => `${name}: got '${query.get(name)}'; write ${words.join(", ")}.`);
}

const segment = (id, name) => $(id).addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) { return; }
  state[name] = button.dataset.v; state.at = null;
  for (const one of $(id).children) { one.setAttribute("aria-pressed", one === button); }
  refresh();
});
segment("bits", "bits"); segment("y", "y");
$("vendor").addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) { return; }
  const isOn = state.vendors.has(button.dataset.v);
  if (isOn && state.vendors.size === 1) { say("One vendor stays chosen."); return; }
  state.vendors[isOn ? "delete" : "add"](button.dataset.v);
  button.setAttribute("aria-pressed", !isOn);
  refresh();
});
const SLOS = ["ttft", "tpot"], isLimit = (id) => Number($(id).value) > 0 && Number.isFinite(Number($(id).value));
for (const id of SLOS) {
  $(id).addEventListener("input", () => {
    const wrong = SLOS.filter((one) => !isLimit(one));
    for (const one of SLOS) { $(one).setAttribute("aria-invalid", wrong.includes(one)); }
    $("slo-problem").textContent = wrong.length ? `${wrong.map((one) => one.toUpperCase()).join(" and ")}: write a number of ms above 0.` : "";
    if (!wrong.includes(id)) { state[id] = Number($(id).value); state.at = null; refresh(); }
  });
}
$("devices").addEventListener("change", () => { state.max = Number($("devices").value); state.at = null; refresh(); });
/** Another engine: of the static site it lies in the page, else the server has it. */
function change(id) {
  DATA[id] = $(id).value; state.at = null;
  if (!DATA.isStatic) { location.assign(address()); return; }
  useEngine();
  refresh();
}
function useEngine() {
  DATA.rows = DATA.engines[DATA.engine];
  DATA.published = DATA.runs[DATA.engine];
  for (const one of DATA.devices) { one.isServed = one.key in DATA.rows; }
}
for (const id of ["engine", "traffic"]) { $(id).addEventListener("change", () => change(id)); }

function near(event) {
  const box = svg.getBoundingClientRect(), scale = plane.width / box.width, x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
  let best = null, least = 900;
  for (const c of plane.curves) {
    pointsOf(c.key).forEach((p, n) => { if (valueOf(p) === null) { return; } const d = (plane.X(p.x) - x) ** 2 + (plane.Y(valueOf(p)) - y) ** 2; if (d < least) { least = d; best = [c.key, n]; } });
  }
  return best;
}
svg.addEventListener("pointermove", (event) => {
  const found = event.pointerType !== "touch" && plane && !event.target.closest(".run") && near(event);
  if (found && (found[0] !== state.device || found[1] !== state.at)) { [state.device, state.at] = found; draw(); card(); }
});
svg.addEventListener("click", (event) => {
  const key = event.target.dataset.device, found = plane && near(event);
  if (key) { state.device = key; state.at = null; } else if (found) { [state.device, state.at] = found; }
  refresh();
});
svg.addEventListener("keydown", (event) => {
  const points = pointsOf(state.device), order = shown().sort((a, b) => (bestOf(b)?.rate ?? 0) - (bestOf(a)?.rate ?? 0)), now = chosen();
  if (!now) { return; }
  const at = state.at ?? points.reduce((best, p, n) => Math.abs(p.x - now.x) < Math.abs(points[best].x - now.x) ? n : best, 0), place = order.indexOf(state.device);
  const moves = { ArrowRight: () => { state.at = Math.max(0, at - 1); }, ArrowLeft: () => { state.at = Math.min(points.length - 1, at + 1); } };
  for (const [key, next] of [["ArrowDown", order[place + 1]], ["ArrowUp", order[place - 1]]]) { moves[key] = () => { if (next) { state.device = next; state.at = null; } }; }
  if (event.key === "Enter" && !DATA.isStatic) { location.assign(`/design?${new URLSearchParams(settingsOf(now))}`); return; }
  if (!moves[event.key]) { return; }
  event.preventDefault(); moves[event.key](); refresh();
});
$("rows").addEventListener("click", (event) => { const key = event.target.closest("[data-device]")?.dataset.device; if (key) { state.device = key; state.at = null; refresh(); } });

// The picker: a list that narrows while typing.
const box = $("model"), list = $("models");
let at = -1, typed = false;
function suggest() {
  const words = box.value.toLowerCase().split(/[\s-]+/).filter(Boolean);
  const found = (typed ? NAMES.filter((name) => words.every((word) => name.toLowerCase().includes(word))) : NAMES).slice(0, 40);
  list.innerHTML = found.map((name, n) => `<li role="option" id="m${n}" aria-selected="${n === at}">${escaped(name)}</li>`).join("") || '<li class="dim">No model of that name.</li>';
  list.hidden = false; box.setAttribute("aria-expanded", "true");
  if (at >= 0) { box.setAttribute("aria-activedescendant", `m${at}`); list.children[at]?.scrollIntoView({ block: "nearest" }); } else { box.removeAttribute("aria-activedescendant"); }
}
const shut = () => { list.hidden = true; box.setAttribute("aria-expanded", "false"); at = -1; typed = false; };
const choose = (name) => { location.assign(DATA.isStatic ? (DATA.pages[name] ? DATA.root + DATA.pages[name] : address()) : `/best/model?name=${encodeURIComponent(name)}`); };
box.addEventListener("click", () => { box.select(); suggest(); });
box.addEventListener("input", () => { typed = true; at = -1; suggest(); });
box.addEventListener("blur", () => setTimeout(shut, 150));
box.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") { if (list.hidden) { suggest(); } at = Math.min(list.children.length - 1, at + 1); suggest(); }
  else if (event.key === "ArrowUp") { at = Math.max(-1, at - 1); suggest(); }
  else if (event.key === "Escape") { shut(); return; }
  else if (event.key === "Enter") { const option = list.children[at >= 0 ? at : 0]; if (!list.hidden && option?.id) { choose(option.textContent); } else if (DATA.isStatic) { shut(); } else { return; } }
  else { return; }
  event.preventDefault();
});
list.addEventListener("mousedown", (event) => { const option = event.target.closest("[role=option]"); if (option) { choose(option.textContent); } });

/** The chart with its colours written out, so that it stands alone. */
function standing() {
  const copy = svg.cloneNode(true), look = getComputedStyle(document.documentElement), [, , width, height] = svg.getAttribute("viewBox").split(" ");
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg"); copy.setAttribute("width", width); copy.setAttribute("height", height);
  copy.insertAdjacentHTML("afterbegin", `<title>${escaped(document.title)}</title><rect width="${width}" height="${height}" fill="var(--paper)"/><style>text{font:12px system-ui,sans-serif;fill:var(--dim)}.name{fill:var(--ink)}.name.on{font-weight:700}</style>`);
  return new XMLSerializer().serializeToString(copy).replace(/var\((--[a-z0-9]+)\)/g, (_, name) => look.getPropertyValue(name).trim()).replaceAll("currentColor", look.color);
}
async function pngOf(text) {
  const image = new Image(), [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: width * 2, height: height * 2 });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}
function table() {
  const columns = ["device", "layout", "devices", "concurrency", "tokens_per_s_per_user", "tokens_per_s_per_device", "low_80", "high_80", "ttft_ms", "tpot_ms", "usd_per_million"];
  const rows = shown().flatMap((key) => pointsOf(key).map((p) => [key, layoutOf(p), p.size, p.concurrency, p.x.toPrecision(4), p.rate, p.rateLow.toPrecision(4), p.rateHigh.toPrecision(4), p.ttft_ms, p.tpot_ms, p.usd?.toPrecision(4) ?? ""]));
  return [columns, ...rows].map((row) => row.join(",")).join("\n") + "\n";
}
const SHARES = {
  link: async () => { await navigator.clipboard.writeText(new URL(address(), location.href).href); return "Link copied."; },
  command: async () => { const p = chosen(); await navigator.clipboard.writeText(p ? commandOf(p) : ""); return "Command copied."; },
  svg: async () => { download(new Blob([standing()], { type: "image/svg+xml" }), "best.svg"); return "Chart saved."; },
  png: async () => { download(await pngOf(standing()), "best.png"); return "Chart saved."; },
  csv: async () => { download(new Blob([table()], { type: "text/csv" }), "best.csv"); return "Points saved."; },
};
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-share]");
  if (button) { say(await SHARES[button.dataset.share]()); }
  if (button) { $("share").open = false; }
});

/** A model or traffic that was not computed ahead: device by device, each drawn as it comes. */
async function compute() {
  const wanted = DATA.devices.filter((one) => one.isServed);
  left = wanted.length;
  const bar = $("progress").querySelector("progress");
  bar.max = wanted.length;
  $("progress-words").textContent = `0 of ${wanted.length} accelerators computed`;
  $("progress").hidden = false;
  const queue = [...wanted];
  const worker = async () => {
    for (let one = queue.shift(); one; one = queue.shift()) {
      const query = new URLSearchParams({ model: DATA.model, engine: DATA.engine, traffic: DATA.traffic, device: one.key });
      try {
        const found = await fetch(`/best/points?${query}`);
        if (found.ok) { DATA.rows[one.key] = (await found.json()).rows; }
      } catch { /* the page was left, or the server has gone: the chart stays without this device */ }
      left -= 1;
      bar.value = wanted.length - left;
      $("progress-words").textContent = `${wanted.length - left} of ${wanted.length} accelerators computed`;
      refresh(true);
    }
  };
  await Promise.all([worker(), worker()]);
  $("progress").hidden = true;
  refresh(true);
}

/** The page stands with the server's chart; this one is drawn after it was painted. */
function start() {
  if (!DATA.isComputed && !DATA.isStatic) { compute(); }
  refresh(true);
  new ResizeObserver(() => { if (plane && Math.abs(plane.width - svg.parentNode.clientWidth) > 1) { draw(); } }).observe(svg.parentNode);
}
read();
requestAnimationFrame(() => setTimeout(start));
