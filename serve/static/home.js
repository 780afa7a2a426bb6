// The list of runs, their curves, and how they compare.
import { byId, el, get, later, live, number, problem } from "./common.js";
import { Chart, fetchCurves } from "./chart.js";
import { parallel } from "./parallel.js";

const shownAtFirst = 200;
const controls = { q: "query", metric: "metric", group: "group", smooth: "smooth", logx: "logx", logy: "logy" };
const chart = new Chart(byId("chart"), byId("legend"));
const selected = new Set();
let all = false; // rows of the table
let wanted = new URLSearchParams(location.search);

function value(name) {
  const node = byId(controls[name]);
  return node.type === "checkbox" ? node.checked : node.value;
}

// restore sets controls to what the address says; the list fills selects.
function restore() {
  for (const [name, id] of Object.entries(controls)) {
    const node = byId(id), given = wanted.get(name);
    if (given == null || node.tagName === "SELECT") continue;
    if (node.type === "checkbox") node.checked = given === "1";
    else node.value = given;
  }
  for (const name of wanted.getAll("run")) selected.add(name);
}

// remember puts the controls into the address, so that it can be sent to others.
function remember() {
  const out = new URLSearchParams();
  for (const name of Object.keys(controls)) {
    const v = value(name);
    if (v && v !== "0") out.set(name, v === true ? "1" : v);
  }
  for (const name of selected) out.append("run", name);
  history.replaceState(null, "", out.size ? "?" + out : location.pathname);
  wanted = out;
}

function options(select, values, chosen) {
  const now = chosen ?? select.value;
  const same = values.map(([v]) => v).join("\n");
  if (select.dataset.values !== same) {
    select.replaceChildren(...values.map(([v, text]) => el("option", { value: v }, text)));
    select.dataset.values = same;
  }
  if (values.some(([v]) => v === now)) select.value = now;
}

let list = { runs: [], keys: [], metrics: [] };

// show fetches the list and the curves at once, and shows the curves first.
async function show() {
  const [runs, curves] = await Promise.all([get("/api/runs?q=" + encodeURIComponent(value("q"))), getCurves()]);
  list = runs;
  const metric = wanted.get("metric") || byId("metric").value || curves.metric;
  options(byId("metric"), list.metrics.map((m) => [m, m]), metric);
  const keys = [...new Set(["task", ...list.keys, "seed"])].map((k) => [k, k]);
  const groups = [["", "nothing"], ["*", "all together"], ...keys];
  options(byId("group"), groups, wanted.get("group") || byId("group").value);
  drawCurves(curves);
  await new Promise((done) => setTimeout(done));
  table();
  parallel(byId("parallel"), byId("sweep"), list);
}

// chosen is what a select has, or what the address says before it has anything.
const chosen = (name) => value(name) || wanted.get(name) || "";

function getCurves() {
  const group = chosen("group");
  return fetchCurves({
    metric: chosen("metric"), q: value("q"), runs: [...selected],
    group: group && group !== "*" ? [group] : [], grouped: group === "*",
    smooth: Number(value("smooth")), log: value("logx"), points: Math.min(1200, byId("chart").clientWidth),
  });
}

function drawCurves(curves) {
  chart.draw(curves, { metric: curves.metric, logx: value("logx"), logy: value("logy") });
  const page = document.documentElement.dataset;
  page.drawn = curves.series.length;
  // The milliseconds from opening to the first picture.
  if (curves.series.length > 0) page.picture ??= String(Math.round(performance.now()));
}

// ago says how long ago a time is.
const ago = (t) => (t ? `${Math.max(0, Math.round((Date.now() - new Date(t)) / 1000))} s ago` : "–");

async function workers() {
  const sweeps = await get("/api/status");
  byId("workers").hidden = sweeps.length === 0;
  byId("workers-body").replaceChildren(...sweeps.map(sweep));
}

// sweep shows how a sweep stands, and a table of its workers.
function sweep({ name, status, written }) {
  const cells = status?.cells;
  const heads = ["worker", "host", "cell", "progress", "seen"];
  return el("div", {},
    el("h3", {}, name === "." ? "This sweep" : name),
    el("p", { class: "note" },
      cells ? `${cells.done} of ${cells.total} cells done, ${cells.running} running, ${cells.failed} failed; ` : "",
      `written ${ago(written)}`),
    el("div", { class: "table" }, el("table", {},
      el("thead", {}, el("tr", {}, heads.map((t) => el("th", { scope: "col" }, t)))),
      el("tbody", {}, (status?.workers ?? []).map(worker)))));
}

function worker(w) {
  const done = w.total ?
    el("progress", { value: w.step, max: w.total, "aria-label": `step ${w.step} of ${w.total}` }) : "";
  return el("tr", {}, el("th", { scope: "row" }, w.name), el("td", {}, w.host ?? ""),
    el("td", {}, w.cell || "idle"), el("td", {}, done), el("td", {}, ago(w.seen)));
}

function table() {
  const keys = list.keys.filter((k) => k !== "task").slice(0, 6);
  const heads = ["overlay", "run", "task", "status", "progress", "figure", "seed", ...keys, "report"];
  const quiet = (text) => (text === "overlay" || text === "report" ? el("span", { class: "unseen" }, text) : text);
  const [thead, tbody] = [byId("runs").tHead, byId("runs").tBodies[0]];
  thead.replaceChildren(el("tr", {}, heads.map((h) => el("th", { scope: "col" }, quiet(h)))));
  const rows = all ? list.runs : list.runs.slice(0, shownAtFirst);
  const focused = tbody.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  tbody.replaceChildren(...rows.map((r) => row(r, keys)));
  if (focused) tbody.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  if (list.runs.length === 0) {
    const text = list.all ? "No run is like that." : "There is no run here yet.";
    tbody.append(el("tr", {}, el("td", { colspan: heads.length }, text)));
  }
  byId("more").hidden = all || list.runs.length <= shownAtFirst;
  byId("more").textContent = `Show all ${list.runs.length}`;
}

function row(r, keys) {
  const overlay = el("input", {
    type: "checkbox", "aria-label": "overlay " + r.name, checked: selected.has(r.name), "data-key": "overlay " + r.name,
    onchange: (e) => {
      selected[e.target.checked ? "add" : "delete"](r.name);
      remember();
      refreshCurves();
    },
  });
  const folder = r.name === "." ? "" : r.name.split("/").map(encodeURIComponent).join("/") + "/";
  const link = (href, text) => el("a", { href, "data-key": `${text} ${r.name}` }, text);
  const step = `step ${r.step} of ${r.total || "?"}`;
  return el("tr", {},
    el("td", {}, overlay),
    el("th", { scope: "row" }, link("/run?name=" + encodeURIComponent(r.name), r.name),
      r.wrong ? el("div", { class: "note warning" }, r.wrong) : null),
    el("td", {}, r.task), el("td", { class: "status " + r.status }, r.status),
    el("td", {}, el("progress", { value: r.step, max: r.total || r.step || 1, "aria-label": step })),
    el("td", { class: "n" }, r.headline ? `${r.headline.name} ${number(r.headline.value)}` : ""),
    el("td", { class: "n" }, String(r.seed)),
    keys.map((k) => el("td", { class: "n" }, r.config[k] ?? "")),
    el("td", {}, r.report ? link(`/report/${folder}report.html`, "report") : ""));
}

async function attempt(...steps) {
  try {
    for (const step of steps) await step();
    problem(null);
  } catch (e) {
    problem(e);
  }
}

const refresh = () => attempt(show, workers);
const refreshCurves = later(() => attempt(async () => drawCurves(await getCurves())), 60);

restore();
byId("query").addEventListener("input", later(() => { remember(); refresh(); }, 250));
for (const id of ["metric", "group", "logx", "logy", "smooth"]) {
  byId(id).addEventListener("input", () => { remember(); refreshCurves(); });
}
byId("controls").addEventListener("submit", (e) => e.preventDefault());
byId("none").addEventListener("click", () => { selected.clear(); remember(); table(); refreshCurves(); });
byId("more").addEventListener("click", () => { all = true; table(); });
await refresh();
live(refresh);
