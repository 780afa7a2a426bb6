// Parallel coordinates: one line for each run across the keys in which runs differ, and its figure.
import { el, number, rove, svg } from "./common.js";

const mostAxes = 9, height = 260, top = 34, bottom = 30;

// parallel draws the runs of a list, and hides the section if there is nothing to compare.
export function parallel(node, section, list) {
  const runs = list.runs.filter((r) => r.headline);
  section.hidden = list.keys.length === 0 || runs.length < 2;
  if (section.hidden || node.contains(document.activeElement)) return; // who looks at a line is not thrown out of it
  const valuesOf = (key) => runs.map((r) => (key === "seed" ? String(r.seed) : r.config[key] ?? ""));
  const axes = [...list.keys.slice(0, mostAxes - 2), "seed"].map((key) => axis(key, valuesOf(key)));
  const figures = runs.map((r) => r.headline.value);
  const names = new Set(runs.map((r) => r.headline.name));
  axes.push(axis(names.size === 1 ? [...names][0] : "figure", figures.map(String)));
  const step = 130, width = step * (axes.length - 1) + 180;
  const x = (i) => 80 + i * step, y = (t) => height - bottom - t * (height - top - bottom);
  const ranks = [...figures].sort((a, b) => a - b);
  const thin = runs.length > 60;
  const said = el("p", { class: "note", id: "line", "aria-live": "polite" },
    "Arrow keys go from run to run, Enter opens one.");
  const lines = runs.map((r, k) => {
    const t = ranks.length > 1 ? ranks.indexOf(figures[k]) / (ranks.length - 1) : 1;
    const good = r.headline.low ? 1 - t : t;
    const points = axes.map((a, i) => `${x(i)},${y(a.at(a.values[k]))}`).join(" ");
    const text = `${r.name}: ${r.headline.name} ${number(r.headline.value)}`;
    const tell = () => { said.textContent = text; };
    return svg("a", {
      href: "/run?name=" + encodeURIComponent(r.name), "aria-label": text, onfocus: tell, onpointerenter: tell,
    }, svg("polyline", {
      points, fill: "none", stroke: `hsl(${15 + 195 * good} 75% 50%)`, "stroke-width": thin ? 1 : 1.8,
      "stroke-opacity": thin ? 0.4 : 0.8,
    }));
  });
  rove(lines);
  const marks = axes.map((a, i) => svg("g", { "aria-hidden": "true" },
    svg("path", { class: "line", d: `M${x(i)} ${top}V${height - bottom}` }),
    svg("text", { x: x(i), y: 16, "text-anchor": "middle" }, shorten(a.name)),
    a.ticks.map((t) => svg("text", { class: "soft", x: x(i) + 5, y: y(t.at) + (t.at === 0 ? 14 : 4) },
      shorten(t.text)))));
  const label = `Parallel coordinates of ${runs.length} runs`;
  node.replaceChildren(
    svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label }, lines, marks),
    said);
  const without = list.runs.length - runs.length;
  if (without > 0) node.append(el("p", { class: "note" }, `${without} runs have no figure yet.`));
}

const shorten = (text) => (text.length > 17 ? text.slice(0, 8) + "…" + text.slice(-8) : text);

// axis says where values are, from 0 to 1: numbers by size, on a logarithmic scale if they span much; all else in
// order.
function axis(name, values) {
  const numbers = values.map(Number);
  if (values.every((v, i) => v !== "" && Number.isFinite(numbers[i]))) {
    const low = Math.min(...numbers), high = Math.max(...numbers);
    const scale = low > 0 && high / low > 50 ? Math.log : (v) => v;
    const at = (v) => (high > low ? (scale(Number(v)) - scale(low)) / (scale(high) - scale(low)) : 0.5);
    const ends = high > low ? [low, high] : [low];
    return { name, values, at, ticks: ends.map((v) => ({ at: at(v), text: number(v) })) };
  }
  const kinds = [...new Set(values)].sort();
  const at = (v) => (kinds.length > 1 ? kinds.indexOf(v) / (kinds.length - 1) : 0.5);
  return { name, values, at, ticks: kinds.slice(0, 12).map((v) => ({ at: at(v), text: v || "–" })) };
}
