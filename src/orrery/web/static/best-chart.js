// The chart, drawn at the width that it is given: fronts with their bands, published runs as dots, names once.
"use strict";

const svg = document.getElementById("chart");
const escaped = (words) => String(words).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const onLog = (low, high, from, to) => (v) => from + (Math.log(v) - Math.log(low)) / (Math.log(high) - Math.log(low)) * (to - from);
const TICKS = [1, 2, 5];
let plane = null;

function ticks(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1) {
    for (const one of TICKS) { const v = Number((one * 10 ** power).toPrecision(1)); if (v >= low * 0.999 && v <= high * 1.001) { found.push(v); } }
  }
  return found;
}

/** Ends of the axes: what the fronts hold, a little more on each side. */
function ends(curves, runs) {
  const xs = [...curves.flatMap((c) => c.points.map((p) => p.x)), ...runs.map((r) => r.x)];
  const ys = [...curves.flatMap((c) => c.points.map(valueOf)), ...runs.map((r) => r.value)];
  const top = Math.max(...ys) * 1.3, bottom = Math.min(...ys);
  return state.y === "rate"
    ? { x: [Math.min(10, ...xs) * 0.95, Math.max(...xs) * 1.15], y: [Math.max(bottom * 0.8, top / 600), top] }
    : { x: [Math.min(10, ...xs) * 0.95, Math.max(...xs) * 1.15], y: [bottom * 0.7, Math.min(top, bottom * 300)] };
}

function draw() {
  const curves = shown().map((key) => ({ key, one: DEVICES[key], points: pointsOf(key).filter((p) => valueOf(p) !== null) }));
  const runs = runsShown();
  const width = Math.max(280, svg.parentNode.clientWidth), isSmall = width < 560, height = isSmall ? 400 : 500;
  const left = isSmall ? 92 : 116, right = width - (isSmall ? 40 : 52), top = 26, bottom = height - 44;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  if (!curves.length) { svg.innerHTML = `<text class="t" x="12" y="40">${isComputing() ? "Computing …" : "No accelerator can serve this choice."}</text>`; plane = null; return; }
  const end = ends(curves, runs), X = onLog(...end.x, left, right), Y = onLog(...end.y, bottom, top);
  plane = { X, Y, width, curves };
  const out = [`<clipPath id="inside"><rect x="${left}" y="${top}" width="${right - left}" height="${bottom - top}"/></clipPath>`];
  out.push(...frame(X, Y, end, { left, right, top, bottom, width, isSmall }));
  const order = [...curves].sort((a, b) => (a.key === state.device) - (b.key === state.device));
  for (const c of order) { out.push(band(c, X, Y)); }
  for (const c of order) { out.push(curve(c, X, Y)); }
  if (state.y === "usd") { out.push(...prices(Y, end, left, right)); }
  out.push(...runs.map((run) => dot(run, X, Y)));
  for (const c of order) {
    const best = bestOf(c.key);
    if (best && valueOf(best) !== null) { out.push(`<circle clip-path="url(#inside)" cx="${X(best.x)}" cy="${Y(valueOf(best))}" r="${c.key === state.device ? 6 : 4}" fill="var(--${c.one.hue})" stroke="var(--paper)" stroke-width="1.5"/>`); }
  }
  const p = chosen();
  if (p && valueOf(p) !== null) { out.push(`<circle clip-path="url(#inside)" cx="${X(p.x)}" cy="${Y(valueOf(p))}" r="8.5" fill="none" stroke="var(--ink)" stroke-width="2"/>`); }
  out.push(...names(curves, X, Y, { left, top, bottom, isSmall }));
  svg.innerHTML = out.join("");
  caption(runs, curves);
}

function frame(X, Y, end, { left, right, top, bottom, width, isSmall }) {
  const out = [], slo = Math.min(end.x[1], Math.max(end.x[0], 1e3 / state.tpot));
  out.push(`<rect x="${left}" y="${top}" width="${Math.max(0, X(slo) - left)}" height="${bottom - top}" fill="var(--zone)"/>`);
  for (const v of ticks(...end.y)) {
    const text = state.y === "rate" ? (v >= 1e3 ? `${v / 1e3}k` : v) : `$${v}`;
    out.push(`<path d="M${left} ${Y(v)}H${right}" stroke="var(--grid)"/><text class="t" x="${right + 6}" y="${Y(v) + 4}">${text}</text>`);
  }
  for (const v of ticks(...end.x)) {
    out.push(`<path d="M${X(v)} ${bottom}v4" stroke="var(--dim)"/><text class="t" x="${X(v)}" y="${bottom + 18}" text-anchor="middle">${v}</text><text class="t" x="${X(v)}" y="${bottom + 34}" text-anchor="middle">${short(1000 / v)}</text>`);
  }
  out.push(`<path d="M${left} ${bottom}H${right}" stroke="var(--dim)"/><text class="t" x="${left - 8}" y="${bottom + 18}" text-anchor="end">tokens/s/user</text><text class="t" x="${left - 8}" y="${bottom + 34}" text-anchor="end">TPOT, ms</text>`);
  out.push(`<text class="t" x="${width - 2}" y="12" text-anchor="end">${state.y === "rate" ? "output tokens/s/device" : "$ per M output tokens"}</text>`);
  out.push(`<path d="M${X(slo)} ${top - 6}V${bottom}" stroke="var(--ink)" stroke-dasharray="2 3"/><text class="t" x="${X(slo) + 5}" y="12">${isSmall ? "SLO" : `SLO: TPOT ${state.tpot} ms, TTFT ${state.ttft} ms`}</text>`);
  return out;
}

/** The joint 80 % interval: concurrency is fixed, so both axes move together and the band runs along rays. */
function band(c, X, Y) {
  const up = c.points.map((p) => `${X(p.xHigh).toFixed(1)},${Y(highOf(p)).toFixed(1)}`), down = c.points.map((p) => `${X(p.xLow).toFixed(1)},${Y(lowOf(p)).toFixed(1)}`).reverse();
  return `<path clip-path="url(#inside)" d="M${[...up, ...down].join("L")}Z" fill="var(--${c.one.hue})" opacity="${c.key === state.device ? 0.2 : 0.035}"/>`;
}

function curve(c, X, Y) {
  const isOn = c.key === state.device, dash = c.one.isCard ? ' stroke-dasharray="6 4"' : "", parts = { true: "", false: "" };
  c.points.slice(1).forEach((b, n) => {
    const a = c.points[n];
    parts[a.isMet && b.isMet] += `M${X(a.x).toFixed(1)},${Y(valueOf(a)).toFixed(1)}L${X(b.x).toFixed(1)},${Y(valueOf(b)).toFixed(1)}`;
  });
  return `<g clip-path="url(#inside)" fill="none" stroke="var(--${c.one.hue})" stroke-linecap="round" stroke-linejoin="round"><path d="${parts.false || "M0 0"}" stroke-width="${isOn ? 2 : 1.2}" opacity=".55"${dash}/><path d="${parts.true || "M0 0"}" stroke-width="${isOn ? 3.25 : 1.9}"${dash}/></g>`;
}

/** Public API prices as lines across: they state no speed. Those that lie close share one label. */
function prices(Y, end, left, right) {
  let last = Infinity;
  return [...DATA.apis].reverse().filter((one) => one.usd > end.y[0] && one.usd < end.y[1]).map((one) => {
    const y = Y(one.usd), isFar = Math.abs(y - last) > 13;
    if (isFar) { last = y; }
    return `<path d="M${left} ${y}H${right}" stroke="var(--warn)" stroke-dasharray="1 4" stroke-width="1.5"><title>API of ${escaped(one.name)}: ${dollars(one.usd)} per M output tokens with their input, ${escaped(one.asOf)}</title></path>${isFar ? `<text class="t" x="${left + 6}" y="${y - 4}" style="fill: var(--warn)">API ${escaped(one.name)} ${dollars(one.usd)}</text>` : ""}`;
  });
}

/** A published run; for the chosen accelerator a thin line leads to what is predicted for that run. */
function dot(run, X, Y) {
  const hue = `var(--${DEVICES[run.device].hue})`, x = X(run.x), y = Y(run.value), isPools = !run.predicted_rate;
  const link = run.device === state.device && run.predicted ? `<path d="M${x} ${y}L${X(run.predictedX)} ${Y(run.predicted)}m-4 0h8m-4 -4v8" fill="none" stroke="var(--ink)"/>` : "";
  return `<g clip-path="url(#inside)">${link}<a class="run" tabindex="-1"><title>${escaped(`Published: ${DEVICES[run.device].title} ${runWords(run)}`)}</title>${isPools ? `<rect x="${x - 4}" y="${y - 4}" width="8" height="8" fill="var(--paper)" stroke="${hue}" stroke-width="1.5"/>` : `<circle cx="${x}" cy="${y}" r="5" fill="var(--paper)" stroke="${hue}" stroke-width="1.25"/><circle cx="${x}" cy="${y}" r="2.4" fill="${hue}"/>`}</a></g>`;
}

/** Names in one column at the left ends, moved apart, with thin leaders. */
function names(curves, X, Y, { left, top, bottom, isSmall }) {
  const inside = (y) => Math.min(bottom, Math.max(top, y));
  const found = curves.map((c) => { const end = c.points.at(-1); return { ...c, x: X(end.x), y: inside(Y(valueOf(end))), at: inside(Y(valueOf(end))) }; }).sort((a, b) => a.at - b.at);
  const step = Math.min(16, (bottom - top) / found.length);
  found.forEach((one, n) => { if (n) { one.at = Math.max(one.at, found[n - 1].at + step); } });
  const over = (found.at(-1)?.at ?? 0) - bottom;
  if (over > 0) { found.at(-1).at -= over; for (let n = found.length - 2; n >= 0; n -= 1) { found[n].at = Math.min(found[n].at, found[n + 1].at - step); } }
  return found.map((c) => `<path d="M${left - 12} ${c.at}L${left - 3} ${c.at}L${c.x} ${c.y}" fill="none" stroke="var(--${c.one.hue})" opacity=".45" stroke-dasharray="1 3"/><text class="name${c.key === state.device ? " on" : ""}" data-device="${c.key}" x="${left - 16}" y="${c.at + 4}" text-anchor="end">${escaped(isSmall ? c.one.title.replace(" 6000", "").replace(" 80 GB", "") : c.one.title)}</text>`);
}

function caption(runs, curves) {
  const key = (drawn, words) => `<span><svg width="24" height="12" aria-hidden="true">${drawn}</svg>${words}</span>`;
  const hidden = DATA.devices.filter((one) => isShown(one.key) && !curves.some((c) => c.key === one.key));
  const reason = (one) => !one.isServed ? "not on this engine" : !one.formats[state.bits] ? `no ${state.bits} bit arithmetic` : !rowsOf(one.key).length ? "does not fit" : "no price known";
  const single = runs.filter((run) => run.predicted_rate).length, pools = runs.length - single;
  document.getElementById("cap").innerHTML = [
    key('<rect y="1" width="24" height="10" fill="var(--nv5)" opacity=".2"/><path d="M0 6H24" stroke="var(--nv5)" stroke-width="2"/>', "best layout, 80 % interval"),
    key('<circle cx="12" cy="6" r="4" fill="var(--nv5)"/>', "best at this SLO"),
    ...(single ? [key('<circle cx="12" cy="6" r="5" fill="none" stroke="var(--nv5)"/><circle cx="12" cy="6" r="2.4" fill="var(--nv5)"/>', `${single} published runs of about this traffic`), key('<path d="M4 6H18M18 2v8M14 6h8" stroke="currentColor"/>', "predicted for that run")] : []),
    ...(pools ? [key('<rect x="8" y="2" width="8" height="8" fill="none" stroke="var(--nv5)" stroke-width="1.5"/>', `${pools} published runs with separate prefill and decode, 16 to 72 devices`)] : []),
    key('<path d="M0 6H24" stroke="var(--nv5)" stroke-width="2" stroke-dasharray="6 4"/>', "PCIe card"),
    ...(state.y === "usd" && DATA.apis.length ? [key('<path d="M0 6H24" stroke="var(--warn)" stroke-width="1.5" stroke-dasharray="1 4"/>', `${DATA.apis.length} public API prices, a million output tokens with their input`)] : []),
    ...(hidden.length && !isComputing() ? [`<span>not drawn: ${hidden.map((one) => `${escaped(one.title)} (${reason(one)})`).join(", ")}</span>`] : []),
  ].join("");
  const sources = [...new Set(runs.map((run) => run.source))];
  document.getElementById("sources").textContent = sources.length ? `Published runs: ${sources.join("; ")}.` : "";
}
