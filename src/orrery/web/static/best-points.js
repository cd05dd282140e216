// The numbers behind the chart: rows become points, points a front, and a front its best point within the SLO.
"use strict";

const DATA = JSON.parse(document.getElementById("data").textContent);
const DEVICES = Object.fromEntries(DATA.devices.map((one) => [one.key, one]));
const S_PER_HOUR = 3600;
const state = { bits: "8", y: "rate", ttft: 1000, tpot: 50, max: DATA.maxDevices, vendors: new Set(DATA.devices.map((one) => one.vendor)), device: "", at: null };

/** One row as a point: x is tokens/s per user; ends of 80 % intervals beside each value. */
function pointOf(device, row) {
  const cell = Object.fromEntries(DATA.columns.map((name, n) => [name, row[n]]));
  return completed({ ...cell, device });
}

function completed(p) {
  const price = DEVICES[p.device].usdPerHour, usd = (rate) => price ? price / S_PER_HOUR / rate * 1e6 : null;
  const rateLow = p.rate * p.rate_low / 100, rateHigh = p.rate * p.rate_high / 100;
  return {
    ...p, size: p.tp * p.pp * p.dp, x: 1e3 / p.tpot_ms, xLow: 1e5 / (p.tpot_ms * p.tpot_high), xHigh: 1e5 / (p.tpot_ms * p.tpot_low),
    rateLow, rateHigh, usd: usd(p.rate), usdLow: usd(rateHigh), usdHigh: usd(rateLow),
    isMet: p.ttft_ms <= state.ttft && p.tpot_ms <= state.tpot,
  };
}

/** What is found of a device within the filters is kept until one changes. */
const known = new Map();
const kept = (find) => (device) => {
  const name = `${find.name} ${device}`;
  if (!known.has(name)) { known.set(name, find(device)); }
  return known.get(name);
};
const rowsOf = kept(function rows(device) { return (DATA.rows[device]?.[state.bits] ?? []).map((row) => pointOf(device, row)).filter((p) => p.size <= state.max); });
const layoutOf = (p) => ["tp", "pp", "dp", "ep"].filter((way) => p[way] > 1 || way === "tp").map((way) => `${way} ${p[way]}`).join(" ");
const valueOf = (p) => p[state.y];
const lowOf = (p) => state.y === "rate" ? p.rateLow : p.usdHigh;
const highOf = (p) => state.y === "rate" ? p.rateHigh : p.usdLow;

/** The Pareto front over all sizes, fastest for one user first. */
const pointsOf = kept(function front(device) {
  const front = [];
  for (const p of [...rowsOf(device)].sort((a, b) => b.x - a.x || b.rate - a.rate)) {
    if (!front.length || p.rate > front.at(-1).rate) { front.push(p); }
  }
  return front;
});

/** The point between two of the same layout at which the SLO is just met; on logarithms, as the planner does. */
function between(a, b) {
  const share = Math.min(...[["ttft_ms", state.ttft], ["tpot_ms", state.tpot]].map(([name, limit]) =>
    b[name] <= limit ? 1 : Math.log(limit / a[name]) / Math.log(b[name] / a[name])));
  const mix = (name) => Math.exp(Math.log(a[name]) * (1 - share) + Math.log(b[name]) * share);
  const p = { ...a, concurrency: Math.max(1, Math.floor(mix("concurrency"))) };
  for (const name of ["ttft_ms", "tpot_ms", "rate", "watts"]) { p[name] = mix(name); }
  return completed({ ...p, tpot_ms: Math.min(p.tpot_ms, state.tpot), ttft_ms: Math.min(p.ttft_ms, state.ttft) });
}

/** The most tokens/s per device within the SLO, on any layout. */
const bestOf = kept(function best(device) {
  let best = null;
  const every = rowsOf(device), take = (p) => { if (p.isMet && (!best || p.rate > best.rate)) { best = p; } };
  every.forEach((p, n) => {
    take(p);
    const next = every[n + 1];
    if (p.isMet && next && !next.isMet && next.size === p.size && layoutOf(next) === layoutOf(p)) { take(between(p, next)); }
  });
  return best;
});

const isShown = (device) => state.vendors.has(DEVICES[device].vendor);
const shown = () => DATA.devices.map((one) => one.key).filter((key) => isShown(key) && pointsOf(key).some((p) => valueOf(p) !== null));
const runsShown = () => DATA.published.filter((run) => run.bits === state.bits && isShown(run.device)).map((run) => {
  const price = DEVICES[run.device].usdPerHour, usd = (rate) => price && rate ? price / S_PER_HOUR / rate * 1e6 : null;
  return {
    ...run, x: 1e3 / run.tpot_ms, value: state.y === "rate" ? run.rate : usd(run.rate),
    predictedX: run.predicted_tpot_ms ? 1e3 / run.predicted_tpot_ms : null, predicted: state.y === "rate" ? run.predicted_rate : usd(run.predicted_rate),
  };
}).filter((run) => run.value);

/** What was run, what came out, and where it was published. */
const runWords = (run) => `${run.layout}${run.predicted_rate ? "" : " (separate prefill and decode)"}, ${run.devices} devices, concurrency ${run.concurrency}: ${short(run.x)} tokens/s/user, ${short(run.rate)} tokens/s/device, TTFT ${short(run.ttft_ms)} ms; ${run.input_tokens} in, ${run.output_tokens} out; ${[run.engine, run.engine_version].filter(Boolean).join(" ")}, ${run.measured_date}; ${run.source}`;

/** The settings of a point, as the page of its estimate takes them. */
function settingsOf(p) {
  const [weights, kv] = DEVICES[p.device].formats[state.bits];
  const found = { model: DATA.model, device: p.device };
  for (const way of ["tp", "pp", "dp", "ep"]) { if (p[way] > 1 || way === "tp") { found[way] = p[way]; } }
  if (weights) { found.weights = weights; }
  return { ...found, kv, engine: DATA.engine, input_tokens: DATA.lengths[0], output_tokens: DATA.lengths[1], concurrency: p.concurrency };
}

const commandOf = (p) => "orrery estimate " + Object.entries(settingsOf(p)).map(([key, value]) => `--${key.replaceAll("_", "-")} ${value}`).join(" ");
const short = (v) => Math.round(v) >= 1000 ? Math.round(v).toLocaleString("en") : v >= 100 ? v.toFixed(0) : String(Number(v.toPrecision(3)));
const dollars = (v) => v === null ? "" : "$" + (v >= 100 ? v.toFixed(0) : v.toPrecision(3));
const shownValue = (v) => state.y === "rate" ? short(v) : dollars(v);
