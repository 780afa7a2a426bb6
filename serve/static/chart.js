// Curves by uPlot: many runs on shared steps, bands of groups.
import { colour, el, number, post, style, svg } from "./common.js";

// fetchCurves asks for a metric and reads the answer: a length, a JSON object, and numbers (see serve/runs.go).
export async function fetchCurves(request) {
  const data = await (await post("/api/curves", request)).arrayBuffer();
  const size = new DataView(data).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(data, 4, size)));
  const all = new Float32Array(data, 4 + size);
  head.rows = [];
  for (let at = 0; at < all.length && head.points > 0; at += head.points) {
    head.rows.push(all.subarray(at, at + head.points));
  }
  return head;
}

// Chart draws what fetchCurves returns.
export class Chart {
  constructor(node, legend = null, height = 340) {
    this.node = node;
    this.legend = legend;
    this.height = height;
    this.notes = el("div", { class: "notes" });
    (legend ?? node).after(this.notes);
    new ResizeObserver(() => this.plot?.setSize(this.size())).observe(node);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.last && this.draw(...this.last));
  }

  size() { return { width: Math.max(this.node.clientWidth - 20, 200), height: this.height }; }

  draw(curves, { metric, logx, logy }) {
    this.last = [curves, { metric, logx, logy }];
    this.plot?.destroy();
    this.plot = null;
    this.node.replaceChildren();
    this.notes.replaceChildren(...notesOf(curves));
    const count = curves.series.length;
    this.node.setAttribute("role", "img");
    this.node.setAttribute("aria-label", describe(curves, metric));
    if (count === 0) {
      this.node.append(el("p", {}, `Nothing has been logged as ${metric || "a metric"}.`));
      this.legend?.replaceChildren();
      return;
    }
    const data = [Array.from(curves.rows[0], (v) => (logx ? Math.max(v, 1) : v))];
    const series = [{}], bands = [];
    const alpha = count > 200 ? 0.25 : count > 40 ? 0.5 : 0.9;
    curves.series.forEach((one, i) => {
      const first = 1 + i * curves.parts;
      for (let part = 0; part < curves.parts; part++) {
        data.push(withGaps(curves.rows[first + part], logy));
        series.push({
          stroke: part === 0 ? colour(i, alpha) : "transparent", width: part > 0 ? 0 : count > 40 ? 1 : 1.6,
          spanGaps: false, points: { show: false },
        });
      }
      if (curves.parts === 3) bands.push({ series: [first + 2, first + 1], fill: colour(i, 0.18) });
    });
    const rule = { stroke: style("--rule"), width: 1 };
    const line = { stroke: style("--soft"), grid: rule, ticks: { stroke: style("--rule") } };
    const values = (_, all) => all.map((v) => (v == null ? "" : number(v)));
    this.plot = new uPlot({
      ...this.size(), series, bands, legend: { show: false },
      cursor: { focus: { prox: 16 }, points: { show: false } },
      focus: { alpha: count > 1 ? 0.25 : 1 },
      scales: { x: { time: false, distr: logx ? 3 : 1 }, y: { distr: logy ? 3 : 1 } },
      axes: [{ ...line, values }, { ...line, size: 62, values }],
      hooks: { setSeries: [(u, i) => this.hover(i)], setCursor: [(u) => this.point(u)] },
    }, data, this.node);
    this.curves = curves;
    this.list(null);
  }

  // hover says which curve the cursor is near.
  hover(i) { this.near = i == null ? null : Math.floor((i - 1) / this.curves.parts); this.list(this.near); }

  point(u) {
    if (this.near == null || u.cursor.idx == null || !this.legend) return;
    const row = this.near * this.curves.parts + 1;
    const y = u.data[row]?.[u.cursor.idx];
    this.legend.dataset.at = y == null ? "" : `step ${number(u.data[0][u.cursor.idx])}: ${number(y, 5)}`;
    this.list(this.near);
  }

  // list names curves: a dozen, or the one that is near.
  list(near) {
    if (!this.legend) return;
    const { series } = this.curves;
    const shown = near == null ? series.slice(0, 12).map((s, i) => [s, i]) : [[series[near], near]];
    const items = shown.filter(([s]) => s).map(([s, i]) => el("span", {},
      svg("svg", { viewBox: "0 0 14 10", "aria-hidden": "true" },
        svg("path", { d: "M0 5H14", stroke: colour(i), "stroke-width": 3 })),
      s.name + (s.runs > 1 ? ` (${s.runs} runs, mean ± one standard deviation)` : "") +
        (s.partial ? " (being read)" : "")));
    if (near != null && this.legend.dataset.at) items.push(el("span", {}, this.legend.dataset.at));
    const rest = series.length - shown.length;
    if (near == null && rest > 0) items.push(el("span", {}, `and ${rest} more`));
    this.legend.replaceChildren(...items);
  }
}

// withGaps is a row as uPlot has it, where undefined is passed over and null is a gap: so is all between the values
// around what is not finite.
function withGaps(row, logy) {
  const out = new Array(row.length);
  let last = -1, gap = false;
  for (let i = 0; i <= row.length; i++) {
    gap ||= row[i] === Infinity;
    if (i < row.length && (!Number.isFinite(row[i]) || (logy && row[i] <= 0))) continue;
    if (gap) out.fill(null, last + 1, i);
    if (i < row.length) out[i] = row[i];
    [last, gap] = [i, false];
  }
  return out;
}

// notesOf says which curves have values that cannot be drawn.
function notesOf({ series }) {
  const some = series.filter((s) => s.other > 0);
  const lines = some.slice(0, 4).map((s) => (s.other === 1 ?
    `${s.name}: one value is not finite (NaN or infinite)` :
    `${s.name}: ${s.other} values are not finite (NaN or infinite)`));
  if (some.length > 4) lines.push(`and ${some.length - 4} more curves have such values`);
  return lines.map((text) => el("p", { class: "note warning" }, text));
}

// describe is what a screen reader says of a picture.
function describe(curves, metric) {
  const last = (i) => {
    const row = curves.rows[1 + i * curves.parts];
    for (let k = row.length - 1; k >= 0; k--) if (Number.isFinite(row[k])) return number(row[k]);
    return "nothing";
  };
  const some = curves.series.slice(0, 5).map((s, i) => `${s.name} ends at ${last(i)}`).join("; ");
  return `Curves of ${metric}, ${curves.series.length} in all. ${some}`;
}
