// Draws what the training in the worker says.
const byId = (id) => document.getElementById(id);
const half = 3.4, x = (v) => 150 + v / half * 150, y = (v) => 150 - v / half * 150;

function svg(tag, attributes) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

let worker = null, first = null, path = [], likelihoods = [];

function start() {
  stop();
  [first, path, likelihoods] = [null, [], []];
  worker = new Worker("worker.js?seed=" + encodeURIComponent(byId("seed").value));
  worker.onmessage = (e) => show(JSON.parse(e.data));
  worker.onerror = (e) => show({ wrong: e.message || "the program did not start" });
  byId("stop").disabled = false;
  byId("said").textContent = "The program is loaded.";
}

function stop() {
  worker?.terminate();
  worker = null;
  byId("stop").disabled = true;
}

function show(m) {
  if (m.wrong) {
    byId("said").textContent = m.wrong;
    stop();
    return;
  }
  first ??= m;
  byId("progress").max = m.total;
  byId("progress").value = m.step;
  if (m.means) path.push(m.means);
  if (m.loglik != null) likelihoods.push([m.step, m.loglik]);
  const last = likelihoods.at(-1);
  byId("said").textContent = `${m.done ? "Done: " : ""}${m.step} of ${m.total} updates` +
    (last ? `, log p(x) ${last[1].toFixed(3)} per point` : "");
  if (m.means) draw();
  if (m.done) {
    stop();
    document.documentElement.dataset.done = "1";
  }
}

function draw() {
  const layers = first.points.map(([a, b]) => svg("circle", { class: "point", cx: x(a), cy: y(b), r: 1.5 }));
  path[0].forEach((_, i) => {
    const way = path.map((means) => `${x(means[i][0])},${y(means[i][1])}`).join(" ");
    const [a, b] = path.at(-1)[i];
    layers.push(svg("polyline", { class: "way", points: way }));
    layers.push(svg("circle", { class: "mean", cx: x(a), cy: y(b), r: 5 }));
  });
  for (const [a, b] of first.true) {
    layers.push(svg("path", { class: "true", d: `M${x(a) - 6} ${y(b)}h12M${x(a)} ${y(b) - 6}v12` }));
  }
  byId("plane").replaceChildren(...layers);
  if (likelihoods.length < 2) return;
  const values = likelihoods.map(([, v]) => v), low = Math.min(...values), high = Math.max(...values);
  const up = (v) => 85 - (v - low) / (high - low || 1) * 80;
  const points = likelihoods.map(([step, v]) => `${step / first.total * 300},${up(v)}`);
  byId("curve").replaceChildren(svg("polyline", { class: "line", points: points.join(" ") }));
}

byId("controls").addEventListener("submit", (e) => { e.preventDefault(); start(); });
byId("stop").addEventListener("click", () => { stop(); byId("said").textContent += "; stopped"; });
