// The page: which result is shown, and what each section draws of it.
const RESULTS = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const NAMES = { ttft: "TTFT", tpot: "TPOT", itl: "ITL", e2el: "E2EL", ntpot: "nTPOT" };
const LONG = { ttft: "Time to first token", tpot: "Time per output token", itl: "Inter-token latency", e2el: "End-to-end latency", ntpot: "Normalised TPOT (first token included)" };
const state = { index: 0, metric: "ttft", isLog: true, range: null };

const nameOf = (r, i) => r.label || (r.request_rate !== undefined && r.request_rate !== "inf" ? `${r.request_rate} requests/s` : r.max_concurrency ? `${r.max_concurrency} in flight` : `result ${i + 1}`);
const unique = RESULTS.map(nameOf).map((n, i, all) => (all.indexOf(n) === all.lastIndexOf(n) ? n : `${n} (${i + 1})`));

function tiles(r) {
  const shown = [
    ["output tokens/s", short(r.output_throughput)], ["requests/s", short(r.request_throughput)],
    ["TTFT, median / p99", `${milliseconds(r.median_ttft_ms)} / ${milliseconds(r.p99_ttft_ms)}`],
    ["TPOT, median / p99", `${milliseconds(r.median_tpot_ms)} / ${milliseconds(r.p99_tpot_ms)}`],
  ];
  if (r.slo_attainment !== null && r.slo_attainment !== undefined) shown.push(["within objectives", percent(r.slo_attainment)], ["goodput, requests/s", short(r.request_goodput)]);
  if (r.kv_use_peak_frac !== undefined) shown.push(["cache use, mean / peak", `${percent(round(r.kv_use_mean_frac))} / ${percent(round(r.kv_use_peak_frac))}`]);
  if (r.saturated_first !== undefined) shown.push(["first limit reached", r.saturated_first + (r.saturated_first_s === null ? "" : ` at ${seconds(r.saturated_first_s)}`)]);
  if (r.usd_per_million_tokens) shown.push(["$ / million output tokens", short(r.usd_per_million_tokens)]);
  if (r.energy_j_per_output_token) shown.push(["J / output token", short(r.energy_j_per_output_token)]);
  if (r.failed) shown.push(["failed requests", short(r.failed)]);
  byId("tiles").replaceChildren(...shown.map(([name, value]) => { const tile = make("div", { class: "tile" }); tile.append(make("b", {}, value), make("span", {}, name)); return tile; }));
}
const round = (v) => (v === null || v === undefined ? null : Number(v.toFixed(3)));

function cdf() {
  const r = RESULTS[state.index], isMany = RESULTS.length > 1, limits = [];
  let series;
  if (isMany) {
    series = RESULTS.map((one, i) => ({ name: unique[i], one, colour: colour(i), dash: DASHES[i % 8] })).filter((s) => (s.one.latency_curves || {})[`${state.metric}_ms`])
      .map((s) => ({ ...s, x: s.one.latency_curves[`${state.metric}_ms`], y: s.one.latency_curves.share }));
  } else {
    const curves = r.latency_curves || {};
    series = ["ttft", "tpot", "e2el"].map((m, i) => ({ name: NAMES[m], x: curves[`${m}_ms`], y: curves.share, colour: colour(i), dash: DASHES[i] })).filter((s) => s.x);
  }
  Object.entries(r.slo_s || {}).forEach(([m, s], row) => { if (!isMany || m === state.metric) limits.push({ x: s * 1000, name: `${NAMES[m] || m} limit`, row }); });
  const buttons = [];
  if (isMany) for (const m of ["ttft", "tpot", "e2el"]) {
    const button = make("button", { type: "button", "aria-pressed": String(state.metric === m) }, NAMES[m]);
    button.addEventListener("click", () => { state.metric = m; cdf(); });
    buttons.push(button);
  }
  const log = make("button", { type: "button", "aria-pressed": String(state.isLog) }, "log scale");
  log.addEventListener("click", () => { state.isLog = !state.isLog; cdf(); });
  byId("cdf-tools").replaceChildren(...buttons, log);
  if (!series.length) { byId("cdf").replaceChildren(make("p", { class: "hint" }, "This result has no curve of latencies.")); return; }
  chart(byId("cdf"), { series, limits, xName: isMany ? LONG[state.metric] : "latency", yName: "share of requests", xText: milliseconds, yText: percent, xLog: state.isLog, fromZero: true, yMax: 1, hover: "y", height: 300 });
}

function breakdown(r) {
  const parts = r.breakdown, holder = byId("breakdown");
  holder.replaceChildren();
  if (!parts || parts.queue_s === null) { holder.append(make("p", { class: "hint" }, "This result has no breakdown.")); return; }
  const names = { queue_s: "queue", prefill_s: "prefill", decode_s: "decode" }, total = parts.queue_s + parts.prefill_s + parts.decode_s;
  const svg = make("svg", { viewBox: "0 0 500 34", height: 34, preserveAspectRatio: "none", role: "img", "aria-label": Object.entries(names).map(([k, n]) => `${n} ${seconds(parts[k])}`).join(", ") });
  const key = make("div", { class: "legend" });
  let left = 0;
  Object.entries(names).forEach(([k, name], i) => {
    const wide = total > 0 ? (Math.max(parts[k], 0) / total) * 500 : 0, tint = colour([1, 0, 2][i]);
    svg.append(make("rect", { x: left, y: 0, width: wide, height: 34, fill: tint }));
    if (left > 0) svg.append(make("rect", { x: left - 0.8, y: 0, width: 1.6, height: 34, fill: "var(--card)" }));
    left += wide;
    const item = make("span"), swatch = make("svg", { viewBox: "0 0 26 10" });
    swatch.append(make("rect", { x: 6, width: 14, height: 10, fill: tint }));
    item.append(swatch, `${name} ${seconds(parts[k])} (${percent(round(total > 0 ? parts[k] / total : 0))})`);
    key.append(item);
  });
  holder.append(svg, key);
}

function percentiles(r) {
  const words = ["mean", "median", "std"].concat(Object.keys(r).map((k) => k.match(/^(p[\d.]+)_ttft_ms$/)).filter(Boolean).map((m) => m[1]).filter((w) => w !== "p50"));
  const sure = r.confidence_95 || {};
  const rows = Object.keys(NAMES).filter((m) => r[`mean_${m}_ms`] !== undefined).map((m) => {
    const c = sure[`mean_${m}_ms`], mean = r[`mean_${m}_ms`];
    return [NAMES[m], milliseconds(mean) + (c ? ` \u00b1 ${milliseconds(c[1] - mean)}` : ""), ...words.slice(1).map((w) => milliseconds(r[`${w}_${m}_ms`]))];
  });
  byId("percentiles").replaceChildren(table(["", Object.keys(sure).length ? "mean (95 % sure)" : "mean", ...words.slice(1)], rows));
}

function objectives(r) {
  byId("slo").hidden = !r.slo_s && !RESULTS.some((one) => one.goodput_by_slo_scale);
  if (byId("slo").hidden) return;
  const series = RESULTS.map((one, i) => ({ name: unique[i], curve: one.goodput_by_slo_scale, colour: colour(i), dash: DASHES[i % 8] })).filter((s) => s.curve)
    .map((s) => ({ ...s, x: s.curve.scale, y: s.curve.request_goodput }));
  if (series.length) chart(byId("scale"), { series, xName: "factor on every limit", yName: "goodput, requests/s", xLog: true, quiet: series.length < 2, limits: [{ x: 1, name: "as asked" }], xText: (v) => `${short(v)} x` });
  const met = r.slo_attainment_by_metric || {};
  const rows = Object.entries(r.slo_s || {}).map(([m, s]) => [LONG[m] || m, seconds(s), percent(met[m])]);
  rows.push(["all of them", "", percent(r.slo_attainment)], ["goodput", "", `${short(r.request_goodput)} requests/s`], ["throughput", "", `${short(r.request_throughput)} requests/s`]);
  const curve = r.goodput_by_slo_scale;
  if (curve) for (const factor of [0.5, 2]) rows.push([`goodput with limits x ${factor}`, "", `${short(curve.request_goodput[nearest(curve.scale, factor)])} requests/s`]);
  byId("objectives").replaceChildren(table(["objective", "limit", "met by"], rows));
}

function timeline(r) {
  const t = r.timeline;
  byId("over-time").hidden = !t || !t.start_s || !t.start_s.length;
  if (byId("over-time").hidden) return;
  const middle = t.start_s.map((s, i) => s + t.width_s[i] / 2), end = t.start_s[t.start_s.length - 1] + t.width_s[t.width_s.length - 1];
  const zoom = (range) => { state.range = range; timeline(r); };
  const line = (name, column, i) => ({ name, x: middle, y: t[column], colour: colour(i), dash: DASHES[i] });
  const plots = [
    ["Requests in flight", "requests", [line("running", "running_requests", 0), line("waiting", "waiting_requests", 1)], short, 0],
    ["Cache in use, share of capacity", "cache in use", [{ ...line("cache in use", "kv_use_frac", 2), dash: "" }], percent, extent(t.kv_use_frac)[1] > 0.4 ? 1 : 0],
    ["Tokens a second", "tokens/s", [line("output", "output_tokens_per_s", 0), line("prompt", "prompt_tokens_per_s", 1)], short, 0],
    ["Power, W", "power", [{ ...line("power", "power_w", 3), dash: "" }], short, 0],
  ].filter(([, , series]) => series.some((s) => s.y && extent(s.y)[1] > 0));
  const holder = byId("timeline");
  if (holder.children.length !== plots.length) holder.replaceChildren(...plots.map(([title]) => { const f = make("figure"); f.append(make("figcaption", {}, title), make("div")); return f; }));
  plots.forEach(([title, yName, series, yText, yMax], i) => {
    holder.children[i].firstChild.textContent = title;
    chart(holder.children[i].lastChild, { series, xName: "time since the start", yName, xText: seconds, yText, yMax, range: state.range || [0, end], onZoom: zoom, height: 190, quiet: series.length < 2 });
  });
  byId("reset").onclick = () => zoom(null);
}

function sweep() {
  if (RESULTS.length < 2) return;
  byId("sweep").hidden = false;
  const x = RESULTS.map((r) => (r.mean_tpot_ms > 0 ? 1000 / r.mean_tpot_ms : null)), y = RESULTS.map((r) => r.output_throughput / (r.num_devices || 1));
  const isBeaten = (i) => x.some((v, j) => x[i] === null || (v !== null && v >= x[i] && y[j] >= y[i] && (v > x[i] || y[j] > y[i])));
  const front = RESULTS.map((_, i) => i).filter((i) => !isBeaten(i)).sort((a, b) => x[a] - x[b]), rest = RESULTS.map((_, i) => i).filter(isBeaten);
  const pick = (list) => ({ x: list.map((i) => x[i]), y: list.map((i) => y[i]), labels: list.map((i) => unique[i]) });
  chart(byId("pareto"), { series: [{ name: "on the front", ...pick(front), points: true, colour: colour(0) }, { name: "beaten", ...pick(rest), points: true, open: true, colour: colour(6) },
    { name: "front", ...pick(front), colour: colour(0), dash: "3 3", unnamed: true }], xName: "output tokens/s/user", yName: "output tokens/s/device" });
  const load = (r) => (typeof r.request_rate === "number" ? r.request_rate : r.max_concurrency), hasRates = RESULTS.every((r) => typeof r.request_rate === "number");
  const order = RESULTS.map((_, i) => i).filter((i) => load(RESULTS[i]) !== null && load(RESULTS[i]) !== undefined).sort((a, b) => load(RESULTS[a]) - load(RESULTS[b]));
  const column = (key) => order.map((i) => RESULTS[i][key] ?? null), at = order.map((i) => load(RESULTS[i]));
  const series = [{ name: "throughput", x: at, y: column("request_throughput") }];
  if (RESULTS.some((r) => r.request_goodput !== null && r.request_goodput !== undefined)) series.push({ name: "goodput (all objectives met)", x: at, y: column("request_goodput") });
  byId("rate-title").textContent = hasRates ? "Throughput and goodput against the request rate" : "Throughput and goodput against the load";
  if (order.length) chart(byId("rates"), { series, xName: hasRates ? "requests/s offered" : "load", yName: "requests/s", fromZero: true });
}

function keys(r) {
  const wanted = byId("filter").value.trim().toLowerCase(), rows = [];
  const walk = (value, name) => {
    if (Array.isArray(value)) { if (value.length <= 4) rows.push([name, value.map((v) => (typeof v === "number" ? Number(v.toPrecision(6)) : v)).join(" to ")]); return; }
    if (value && typeof value === "object") { for (const [k, v] of Object.entries(value)) walk(v, name ? `${name}.${k}` : k); return; }
    rows.push([name, value === null ? "–" : typeof value === "number" ? String(Number(value.toPrecision(8))) : String(value)]);
  };
  for (const [k, v] of Object.entries(r)) if (!["timeline", "latency_curves", "goodput_by_slo_scale", "settings", "notes"].includes(k)) walk(v, k);
  byId("keys").replaceChildren(table(["key", "value"], rows.filter(([k]) => k.toLowerCase().includes(wanted))));
}

function settings(r) {
  const flat = Object.entries(r.settings || {}).map(([k, v]) => [k, v !== null && typeof v === "object" ? JSON.stringify(v) : String(v)]);
  byId("settings").hidden = !flat.length;
  byId("settings").lastElementChild.replaceChildren(table(["setting", "value"], flat));
  byId("notes").hidden = !(r.notes || []).length;
  byId("notes").lastElementChild.replaceChildren(...(r.notes || []).map((n) => make("li", {}, String(n))));
}

function show() {
  const r = RESULTS[state.index];
  state.range = null;
  const load = r.request_rate === undefined ? "" : r.request_rate === "inf" ? "all requests at once" : `${short(r.request_rate)} requests/s`;
  byId("subtitle").textContent = [r.model_id, `${short(r.completed)} of ${short(r.num_prompts)} requests in ${seconds(r.duration)}`, load,
    r.num_devices ? `${r.num_devices} device${r.num_devices > 1 ? "s" : ""}` : "", r.date].filter(Boolean).join(" · ");
  for (const part of [tiles, breakdown, percentiles, objectives, timeline, keys, settings]) part(r);
  cdf();
}

const chooser = byId("pick").querySelector("select");
unique.forEach((name, i) => chooser.append(make("option", { value: i }, name)));
byId("pick").hidden = RESULTS.length < 2;
chooser.addEventListener("change", () => { state.index = Number(chooser.value); show(); });
byId("filter").addEventListener("input", () => keys(RESULTS[state.index]));
document.documentElement.dataset.theme = window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
byId("theme").addEventListener("click", () => { const root = document.documentElement.dataset; root.theme = root.theme === "dark" ? "light" : "dark"; });
sweep();
show();
