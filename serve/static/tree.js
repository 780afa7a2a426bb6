// Pictures of trees: whole ones, forests that are being built, and how probable spans are.
import { percent, rove, svg } from "./common.js";

const stepY = 40;

// layout says where words are, so that all pictures of a sentence agree.
function layout(words) {
  const at = [];
  let x = 10;
  for (const w of words) {
    const width = Math.max(44, 8.2 * w.length + 18);
    at.push(x + width / 2);
    x += width;
  }
  return { at, width: x + 10 };
}

// tree draws spans (parts before the whole) over words; tags are below the words.
export function tree(words, spans, tags = [], label = "a tree") {
  const { at, width } = layout(words);
  const nodes = words.map((_, i) => ({ first: i, last: i, x: at[i], level: 0 }));
  let tops = [...nodes];
  const inner = [];
  for (const s of spans) {
    const parts = tops.filter((t) => t.first >= s.first && t.last <= s.last);
    const node = {
      ...s, x: (parts[0].x + parts[parts.length - 1].x) / 2, level: 1 + Math.max(...parts.map((p) => p.level)), parts,
    };
    inner.push(node);
    tops = tops.filter((t) => !parts.includes(t)).concat(node).sort((a, b) => a.first - b.first);
  }
  const levels = Math.max(1, ...inner.map((n) => n.level));
  const y = (n) => 24 + (levels - n.level) * stepY;
  const height = 24 + levels * stepY + (tags.length ? 44 : 26);
  const line = (n, p) => svg("path", { class: "line", d: `M${n.x} ${y(n) + 5}L${p.x} ${y(p) - (p.level ? 15 : 12)}` });
  const lines = inner.flatMap((n) => n.parts.map((p) => line(n, p)));
  const middle = { "text-anchor": "middle" }, floor = y({ level: 0 });
  const name = (n) => svg("text", { x: n.x, y: y(n), ...middle, "data-node": n.label ?? "" }, n.label || "•");
  const leaves = words.map((w, i) => svg("g", {},
    svg("text", { x: at[i], y: floor + 4, ...middle, "font-weight": "600" }, w),
    tags[i] ? svg("text", { class: "soft", x: at[i], y: floor + 22, ...middle }, tags[i]) : null));
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    lines, inner.map(name), leaves);
}

// pyramid draws how probable it is that words are a constituent, each span above the middle of its words.
export function pyramid(words, spans) {
  const { at, width } = layout(words);
  const n = words.length, row = 26;
  const height = 20 + n * row + 10;
  const y = (length) => 14 + (n - length) * row;
  const cells = [];
  const known = new Map(spans.map((s) => [s.first + " " + s.last, s]));
  for (let length = n; length > 1; length--) {
    for (let first = 0; first + length <= n; first++) {
      const s = known.get(first + " " + (first + length - 1)) ?? { probability: 0, labels: [] };
      const text = `${words.slice(first, first + length).join(" ")}: ${percent(s.probability)}` +
        s.labels.map((l) => `, ${l.label} ${percent(l.probability)}`).join("");
      const x = (at[first] + at[first + length - 1]) / 2;
      const p = s.probability, hot = p > 0.05;
      cells.push(svg("g", hot ? { class: "hot", role: "img", "aria-label": text } : { "aria-hidden": "true" },
        svg("title", {}, text),
        svg("rect", {
          x: x - 19, y: y(length), width: 38, height: row - 4, rx: 4,
          fill: "var(--accent)", "fill-opacity": Math.max(0.06, p),
        }),
        p >= 0.005 ? svg("text", {
          x, y: y(length) + 15, "text-anchor": "middle", class: p > 0.55 ? "onfill" : null,
        }, String(Math.round(100 * p))) : null));
    }
  }
  rove(cells.filter((c) => c.classList.contains("hot")));
  const leaf = (w, i) => svg("text", { x: at[i], y: height - 14, "text-anchor": "middle", "font-weight": "600" }, w);
  const label = "How probable spans are, in percent; arrow keys go from one to the next";
  return svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label },
    cells, words.map(leaf));
}

// joined returns the spans after some steps, each of which joins the two trees that meet at a gap.
export function joined(words, steps) {
  const owner = words.map((_, i) => ({ first: i, last: i }));
  return steps.map(({ chosen }) => {
    const [a, b] = [owner[chosen.gap], owner[chosen.gap + 1]];
    const whole = { first: a.first, last: b.last, label: chosen.label ?? "" };
    for (let i = whole.first; i <= whole.last; i++) owner[i] = whole;
    return whole;
  });
}
