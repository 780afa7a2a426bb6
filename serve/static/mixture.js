// The panel of the mixture: means over updates, and three posteriors side by side. A click adds a point.
import { ask, colour, el, guarded, number, percent, svg } from "./common.js";

const half = 3.4, size = 300;
const methods = [["exact", "Exact EM"], ["meanfield", "Mean-field EM"], ["gfn", "GFlowNet-EM"]];
const x = (v) => ((v + half) / (2 * half)) * size, y = (v) => size - x(v);

export async function mixturePanel(panel, about) {
  const node = panel("Means over updates", "means");
  const longest = Math.max(...Object.values(about.paths).map((p) => p.length));
  const range = el("input", { type: "range", min: 0, max: longest - 1, value: longest - 1, id: "iteration" });
  const said = el("span", { class: "note" }), where = el("span", { class: "unseen", role: "status" });
  const shown = about.points.slice(0, 400);
  const views = methods.map(([key, title]) => ({ key, title, plane: plane(title), path: about.paths[key] }));
  const start = el("button", { type: "button", id: "play", onclick: () => play() }, "Play");
  node.append(el("form", { onsubmit: (e) => e.preventDefault() },
    el("label", { class: "grow" }, "M-steps made", range), start, said),
  el("div", { class: "three" }, views.map((v) => el("div", {}, el("h3", {}, v.title), v.plane))),
  el("p", { class: "note" }, "Crosses are the true means. Colours say to which supercluster the exact, the " +
    "mean-field and the GFlowNet posterior give a point, all three at the means of GFlowNet-EM. Click a plane, or " +
    "move with arrow keys and press Enter, to add a point."));

  const box = panel("Posterior of a point", "responsibilities");
  const out = el("div", { id: "posterior" }, el("p", { class: "note" }, "Click one of the planes above."));
  box.append(out, where);

  let owners = {}, added = [];
  const draw = () => {
    const t = Number(range.value);
    said.textContent = `${t} of ${longest - 1}`;
    for (const v of views) {
      const until = Math.round(t * (v.path.length - 1) / Math.max(longest - 1, 1));
      const owner = owners[v.key];
      const layers = shown.map((p, n) => svg("circle", {
        cx: x(p[0]), cy: y(p[1]), r: 2, fill: colour(owner?.[n] ?? 0), "fill-opacity": owner ? 0.6 : 0.25,
      }));
      v.path[0].forEach((_, i) => {
        const way = v.path.slice(0, until + 1).map((mu) => `${x(mu[i][0])},${y(mu[i][1])}`).join(" ");
        const [a, b] = v.path[until][i];
        layers.push(svg("polyline", { points: way, class: "mark", "stroke-opacity": 0.6 }),
          svg("circle", { cx: x(a), cy: y(b), r: 6, fill: colour(i), stroke: "var(--ink)", "stroke-width": 1.5 }));
      });
      about.true_means.forEach(([a, b]) => layers.push(svg("path", {
        d: `M${x(a) - 6} ${y(b)}h12M${x(a)} ${y(b) - 6}v12`, stroke: "var(--ink)", "stroke-width": 1.5,
      })));
      added.forEach(([a, b], n) => layers.push(svg("circle", { cx: x(a), cy: y(b), r: 5, class: "mark" }),
        svg("text", { x: x(a) + 8, y: y(b) - 6 }, String(n + 1))));
      if (cursor) layers.push(svg("circle", { cx: x(cursor[0]), cy: y(cursor[1]), r: 4, class: "mark" }));
      v.plane.replaceChildren(svg("title", {}, `${v.title}: points and means`), ...layers);
    }
  };
  let cursor = null;
  function plane(title) {
    const at = svg("svg", {
      class: "plane", viewBox: `0 0 ${size} ${size}`, tabindex: 0, role: "application",
      "aria-label": title + ": press arrow keys and Enter to add a point",
    });
    at.addEventListener("click", (e) => {
      const r = at.getBoundingClientRect();
      add([(2 * (e.clientX - r.left) / r.width - 1) * half, (1 - 2 * (e.clientY - r.top) / r.height) * half]);
    });
    at.addEventListener("keydown", (e) => {
      const move = { ArrowLeft: [-0.2, 0], ArrowRight: [0.2, 0], ArrowUp: [0, 0.2], ArrowDown: [0, -0.2] }[e.key];
      if (move) {
        cursor = (cursor ?? [0, 0]).map((v, i) => Math.max(-half, Math.min(half, v + move[i])));
        where.textContent = `(${number(cursor[0], 3)}, ${number(cursor[1], 3)})`;
      } else if (e.key === "Enter" && cursor) add(cursor);
      else return;
      e.preventDefault();
      draw();
    });
    return at;
  }

  const add = (point) => guarded(out, async () => {
    added.push(point);
    draw();
    const p = await ask("posterior", { points: added });
    const kinds = [["exact", "Exact posterior"], ["meanfield", "Mean field"], ["gfn", "GFlowNet"]];
    out.replaceChildren(...added.map((at, n) => el("div", {},
      el("h3", {}, `Point ${n + 1} at (${number(at[0], 3)}, ${number(at[1], 3)})`),
      el("div", { class: "three" }, kinds.map(([key, title]) => heat(title, p[key][n], p))))).reverse());
  });

  function heat(title, p, { super: rows, petals }) {
    const cell = (i, j) => {
      const v = p[i * petals + j];
      const td = el("td", { title: percent(v) }, v >= 0.005 ? String(Math.round(100 * v)) : "");
      td.style.background = `color-mix(in srgb, var(--accent) ${Math.round(80 * v)}%, transparent)`;
      return td;
    };
    const row = (i) => el("tr", {}, el("th", { scope: "row" }, String(i + 1)),
      [...Array(petals).keys()].map((j) => cell(i, j)));
    return el("div", { class: "scroll" }, el("table", { class: "heat" },
      el("caption", { class: "note" }, `${title}: supercluster by petal`),
      el("tbody", {}, [...Array(rows).keys()].map(row))));
  }

  // play moves the slider to the end, from the beginning if it is there, until it is pressed again.
  let timer = 0;
  function play() {
    if (timer) { stop(); return; }
    if (Number(range.value) >= longest - 1) range.value = 0;
    start.textContent = "Pause";
    timer = setInterval(() => {
      range.value = Number(range.value) + 1;
      draw();
      if (Number(range.value) >= longest - 1) stop();
    }, Math.min(80, 4000 / longest));
    draw();
  }
  function stop() {
    clearInterval(timer);
    timer = 0;
    start.textContent = "Play";
  }

  range.addEventListener("input", () => { stop(); draw(); });
  draw();
  await guarded(node, async () => {
    const p = await ask("posterior", { points: shown });
    const owner = (q) => Math.floor(q.indexOf(Math.max(...q)) / p.petals);
    for (const [key] of methods) owners[key] = p[key].map(owner);
    draw();
  });
}
