"use strict";
// Charts in SVG: lines and points, linear or logarithmic x, hover values, zoom by dragging. Text is only ever set as text.
const DASHES = ["", "7 3", "2 3", "9 3 2 3", "4 2", "1 2", "12 4", "6 2 2 2"];
const colour = (i) => `var(--s${i % 8})`;

function make(name, attributes = {}, text = null) {
  const isSvg = ["svg", "path", "line", "rect", "text", "circle", "g"].includes(name);
  const node = isSvg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== null) node.textContent = text;
  return node;
}

function short(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1e9) return (value / 1e9).toPrecision(3) + " G";
  if (size >= 1e6) return (value / 1e6).toPrecision(3) + " M";
  if (size >= 1e4) return Math.round(value).toLocaleString("en");
  if (size >= 1000 || Number.isInteger(value)) return value.toLocaleString("en", { maximumFractionDigits: 0 });
  if (size > 0 && size < 0.001) return value.toExponential(2);
  return String(Number(value.toPrecision(3)));
}
const milliseconds = (ms) => (ms === null || ms === undefined ? "–" : ms < 1000 ? short(ms) + " ms" : short(ms / 1000) + " s");
const seconds = (s) => (s === null ? "–" : s < 1 && s > 0 ? short(s * 1000) + " ms" : short(s) + " s");
const percent = (frac) => (frac === null || frac === undefined ? "–" : String(Number((frac * 100).toPrecision(4))) + " %");

function linearTicks(low, high, count) {
  const rough = (high - low) / Math.max(count, 1);
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high * (1 + 1e-12) + 1e-300; i++) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

function logTicks(low, high) {
  const steps = Math.log10(high / low) > 3 ? [1] : Math.log10(high / low) > 1.2 ? [1, 3] : [1, 2, 5];
  const ticks = [];
  for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p++)
    for (const m of steps) if (m * 10 ** p >= low * 0.999 && m * 10 ** p <= high * 1.001) ticks.push(m * 10 ** p);
  return ticks.length > 1 ? ticks : linearTicks(low, high, 5);
}

function nearest(values, target) {
  let low = 0, high = values.length - 1;
  while (high - low > 1) { const mid = (low + high) >> 1; if (values[mid] <= target) low = mid; else high = mid; }
  return Math.abs(values[high] - target) < Math.abs(values[low] - target) ? high : low;
}

function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const v of values) if (v !== null && Number.isFinite(v)) { if (v < low) low = v; if (v > high) high = v; }
  return [low, high];
}

const tip = () => document.getElementById("tip");
function showTip(event, text) {
  const box = tip();
  box.textContent = text;
  box.hidden = false;
  const left = event.clientX + 16 + box.offsetWidth > window.innerWidth ? event.clientX - box.offsetWidth - 12 : event.clientX + 16;
  box.style.left = `${Math.max(4, left)}px`;
  box.style.top = `${Math.max(4, Math.min(event.clientY + 12, window.innerHeight - box.offsetHeight - 4))}px`;
}

// spec: series [{name, x, y, points, labels, dash}], xName, yName, xText, yText, xLog, yMax, limits [{x, name}], range, onZoom, height, hover "x" | "y"
function chart(holder, spec) {
  const draw = () => paint(holder, spec);
  draw();
  if (!holder.watch) { holder.watch = new ResizeObserver(() => holder.again && holder.again()); holder.watch.observe(holder); }
  let width = holder.clientWidth;
  holder.again = () => { if (holder.clientWidth !== width) { width = holder.clientWidth; draw(); } };
}

function paint(holder, spec) {
  const W = Math.max(holder.clientWidth, 220), H = spec.height || 270;
  const box = { left: 58, right: W - 14, top: 10, bottom: H - 38 };
  const xText = spec.xText || short, yText = spec.yText || short;
  const positive = (v) => !spec.xLog || v > 0;
  const all = spec.series.flatMap((s) => s.x.filter((v) => v !== null && positive(v)));
  let [x0, x1] = spec.range || extent(all.concat((spec.limits || []).map((l) => l.x).filter(positive)));
  if (!(x1 > x0)) { x0 = spec.xLog ? x0 / 2 : x0 - 1; x1 = spec.xLog ? x1 * 2 : x1 + 1; }
  if (spec.fromZero && !spec.xLog && !spec.range) x0 = 0;
  const seen = spec.series.flatMap((s) => s.y.filter((_, i) => s.x[i] >= x0 && s.x[i] <= x1));
  const y1 = spec.yMax || (extent(seen)[1] > 0 ? extent(seen)[1] * 1.06 : 1);
  const of = spec.xLog ? Math.log : (v) => v;
  const px = (v) => box.left + ((of(v) - of(x0)) / (of(x1) - of(x0))) * (box.right - box.left);
  const py = (v) => box.bottom - (v / y1) * (box.bottom - box.top);
  const back = (p) => { const at = of(x0) + ((p - box.left) / (box.right - box.left)) * (of(x1) - of(x0)); return spec.xLog ? Math.exp(at) : at; };
  const svg = make("svg", { viewBox: `0 0 ${W} ${H}`, height: H, role: "img", "aria-label": `${spec.yName} against ${spec.xName}` });
  for (const t of linearTicks(0, y1, 5)) {
    svg.append(make("line", { class: "grid", x1: box.left, x2: box.right, y1: py(t), y2: py(t) }), make("text", { x: box.left - 6, y: py(t) + 4, "text-anchor": "end" }, yText(t)));
  }
  let lastLabel = -Infinity;
  for (const t of spec.xLog ? logTicks(x0, x1) : linearTicks(x0, x1, W / 110)) {
    svg.append(make("line", { class: "grid", x1: px(t), x2: px(t), y1: box.top, y2: box.bottom }));
    const label = xText(t), half = label.length * 3.3;
    if (px(t) - half < lastLabel + 6) continue;
    lastLabel = px(t) + half;
    svg.append(make("text", { x: Math.min(px(t), W - half), y: box.bottom + 15, "text-anchor": "middle" }, label));
  }
  svg.append(make("text", { x: (box.left + box.right) / 2, y: H - 5, "text-anchor": "middle" }, spec.xName));
  for (const limit of spec.limits || []) {
    if (!positive(limit.x) || limit.x < x0 || limit.x > x1) continue;
    const isLeft = px(limit.x) > box.right - 90;
    svg.append(make("line", { class: "limit", x1: px(limit.x), x2: px(limit.x), y1: box.top, y2: box.bottom }),
      make("text", { x: px(limit.x) + (isLeft ? -4 : 4), y: box.bottom - 6 - 14 * (limit.row || 0), "text-anchor": isLeft ? "end" : "start" }, limit.name));
  }
  const inner = make("svg", { x: box.left, y: 0, width: box.right - box.left, height: H, viewBox: `${box.left} 0 ${box.right - box.left} ${H}` });
  if (!spec.range) inner.setAttribute("overflow", "visible");
  spec.series.forEach((s, i) => {
    const tint = s.colour || colour(i);
    if (!s.points) {
      let d = "", pen = false;
      s.x.forEach((x, k) => { if (s.y[k] === null || x === null || !positive(x)) { pen = false; return; } d += `${pen ? "L" : "M"}${px(x).toFixed(1)} ${py(s.y[k]).toFixed(1)}`; pen = true; });
      inner.append(make("path", { d, fill: "none", stroke: tint, "stroke-width": 2, "stroke-dasharray": s.dash === undefined ? DASHES[i % 8] : s.dash, "stroke-linejoin": "round" }));
    } else s.x.forEach((x, k) => { if (x !== null && s.y[k] !== null) inner.append(make("circle", { cx: px(x), cy: py(s.y[k]), r: s.open ? 4 : 5.5, fill: s.open ? "none" : tint, stroke: tint, "stroke-width": 1.5 })); });
  });
  const marks = make("g");
  svg.append(inner, marks);
  interact(svg, marks, spec, { box, px, py, back, xText, yText });
  holder.replaceChildren(svg);
  if (!spec.quiet) holder.append(legend(spec.series));
}

function interact(svg, marks, spec, at) {
  let from = null;
  const place = (event) => { const r = svg.getBoundingClientRect(); return [Math.min(Math.max(event.clientX - r.left, at.box.left), at.box.right), event.clientY - r.top]; };
  svg.addEventListener("pointerdown", (event) => { if (spec.onZoom && event.button === 0) { from = place(event)[0]; svg.setPointerCapture(event.pointerId); } });
  svg.addEventListener("pointermove", (event) => {
    const [x, y] = place(event);
    marks.replaceChildren();
    if (from !== null) {
      marks.append(make("rect", { class: "zoom", x: Math.min(from, x), width: Math.abs(x - from), y: at.box.top, height: at.box.bottom - at.box.top }));
      showTip(event, `${at.xText(at.back(Math.min(from, x)))} to ${at.xText(at.back(Math.max(from, x)))}`);
      return;
    }
    const text = spec.series.some((s) => s.points) ? hoverPoint(marks, spec, at, x, y) : spec.hover === "y" ? hoverShare(marks, spec, at, y) : hoverX(marks, spec, at, x);
    if (text) showTip(event, text); else tip().hidden = true;
  });
  svg.addEventListener("pointerup", (event) => {
    const x = place(event)[0], start = from;
    from = null;
    marks.replaceChildren();
    if (spec.onZoom && start !== null && Math.abs(x - start) > 6) spec.onZoom([at.back(Math.min(start, x)), at.back(Math.max(start, x))]);
  });
  svg.addEventListener("pointerleave", () => { if (from === null) marks.replaceChildren(); tip().hidden = true; });
  if (spec.onZoom) svg.addEventListener("dblclick", () => spec.onZoom(null));
}

function hoverX(marks, spec, at, x) {
  const first = spec.series.find((s) => s.x.length);
  if (!first) return "";
  const value = at.back(x), shown = first.x[nearest(first.x, value)];
  marks.append(make("line", { class: "cursor", x1: at.px(shown), x2: at.px(shown), y1: at.box.top, y2: at.box.bottom }));
  const lines = spec.series.map((s, i) => {
    const k = nearest(s.x, value);
    if (s.y[k] !== null) marks.append(make("circle", { cx: at.px(s.x[k]), cy: at.py(s.y[k]), r: 3.5, fill: s.colour || colour(i) }));
    return `${s.name}: ${at.yText(s.y[k])}`;
  });
  return [`${spec.xName}: ${at.xText(shown)}`, ...lines].join("\n");
}

function hoverShare(marks, spec, at, y) {
  const share = Math.min(Math.max((at.box.bottom - y) / (at.box.bottom - at.box.top), 0), 1) * (spec.yMax || 1);
  marks.append(make("line", { class: "cursor", x1: at.box.left, x2: at.box.right, y1: at.py(share), y2: at.py(share) }));
  const lines = spec.series.map((s, i) => {
    const k = nearest(s.y, share), x = s.x[k];
    if (x !== null && (!spec.xLog || x > 0)) marks.append(make("circle", { cx: at.px(x), cy: at.py(s.y[k]), r: 3.5, fill: s.colour || colour(i) }));
    return `${s.name}: ${at.xText(x)}`;
  });
  return [`${percent(spec.series[0].y[nearest(spec.series[0].y, share)])} of requests within`, ...lines].join("\n");
}

function hoverPoint(marks, spec, at, x, y) {
  let best = null, least = 30;
  spec.series.forEach((s) => s.points && s.x.forEach((v, k) => {
    if (v === null || s.y[k] === null) return;
    const away = Math.hypot(at.px(v) - x, at.py(s.y[k]) - y);
    if (away < least) { least = away; best = [s, k]; }
  }));
  if (!best) return "";
  const [s, k] = best;
  marks.append(make("circle", { cx: at.px(s.x[k]), cy: at.py(s.y[k]), r: 9, fill: "none", stroke: "currentColor" }));
  return `${s.labels ? s.labels[k] + "\n" : ""}${spec.xName}: ${at.xText(s.x[k])}\n${spec.yName}: ${at.yText(s.y[k])}`;
}

function legend(series) {
  const list = make("div", { class: "legend" });
  series.forEach((s, i) => {
    if (s.unnamed) return;
    const item = make("span"), key = make("svg", { viewBox: "0 0 26 10", "aria-hidden": "true" });
    key.append(s.points ? make("circle", { cx: 13, cy: 5, r: 4, fill: s.open ? "none" : s.colour || colour(i), stroke: s.colour || colour(i) })
      : make("line", { x1: 0, x2: 26, y1: 5, y2: 5, stroke: s.colour || colour(i), "stroke-width": 2.5, "stroke-dasharray": s.dash === undefined ? DASHES[i % 8] : s.dash }));
    item.append(key, s.name);
    list.append(item);
  });
  return list;
}

function table(head, rows) {
  const node = make("table"), top = make("tr"), body = make("tbody"), header = make("thead");
  for (const word of head) top.append(make("th", { scope: "col" }, word));
  header.append(top);
  for (const row of rows) { const line = make("tr"); row.forEach((cell) => line.append(make("td", {}, String(cell)))); body.append(line); }
  node.append(header, body);
  return node;
}
