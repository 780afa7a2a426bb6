// One run: all its curves, and panels that look into its model.
import { ask, byId, el, get, live, problem } from "./common.js";
import { Chart, fetchCurves } from "./chart.js";
import { diagnosePanel } from "./diagnose.js";
import { digitsPanel } from "./digits.js";
import { grammarPanel } from "./grammar.js";
import { mixturePanel } from "./mixture.js";

const { run, questions } = byId("main").dataset;
const charts = new Map();

async function curves() {
  const { metrics, runs: [one] } = await get("/api/runs?name=" + encodeURIComponent(run));
  byId("wrong").hidden = !one?.wrong;
  byId("wrong").textContent = one?.wrong ?? "";
  const smooth = Number(byId("smooth").value), logx = byId("logx").checked, logy = byId("logy").checked;
  for (const metric of metrics.slice(0, 40)) {
    if (!charts.has(metric)) {
      const node = el("div", { class: "chart" });
      byId("curves").append(el("div", {}, el("h3", {}, metric), node));
      charts.set(metric, new Chart(node, null, 190));
    }
    const found = await fetchCurves({ metric, runs: [run], smooth, log: logx, points: 400 });
    charts.get(metric).draw(found, { metric, logx, logy });
  }
  document.documentElement.dataset.drawn = charts.size;
}

const refresh = async () => {
  try { await curves(); } catch (e) { problem(e); }
};
for (const id of ["smooth", "logx", "logy"]) byId(id).addEventListener("input", refresh);

// panel adds a part of the page that looks into the model.
function panel(title, id) {
  const node = el("section", { class: "panel", id, "aria-labelledby": id + "-title" },
    el("h2", { id: id + "-title" }, title));
  byId("model").append(node);
  return node;
}

async function model() {
  const known = new Set(questions.split(" "));
  if (questions === "") return;
  const about = await ask("about");
  if (known.has("parse")) await grammarPanel(panel, about);
  if (known.has("choose")) await digitsPanel(panel, about);
  if (known.has("posterior")) await mixturePanel(panel, about);
  if (known.has("diagnose")) diagnosePanel(panel);
  document.documentElement.dataset.model = "ready";
}

await Promise.all([refresh(), model().catch(problem)]);
live(refresh);
