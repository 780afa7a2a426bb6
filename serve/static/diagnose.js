// The panel of any model with a posterior: effective sample size, and calibration by simulation.
import { ask, el, guarded, number, svg } from "./common.js";

export function diagnosePanel(panel) {
  const node = panel("How good q(z|x) is", "diagnosis");
  const out = el("div", {});
  node.append(el("form", { onsubmit: (e) => { e.preventDefault(); guarded(node, measure); } },
    el("button", { class: "main", id: "diagnose" }, "Measure")),
  el("p", { class: "note" }, "Effective sample size and log p(x) by importance sampling; calibration by simulation: " +
    "ranks are even if q is the posterior."), out);

  async function measure() {
    const d = await ask("diagnose", {});
    out.replaceChildren(
      el("p", {}, `log p(x) is about ${number(d.log_prob, 5)} ± ${number(d.std_err, 2)} for ${d.observations} ` +
        `observations. ${d.samples} samples of q are worth ${number(d.effective_samples, 3)} exact ones. ` +
        `Mean log-weight ${number(d.elbo, 5)}.`),
      el("p", {}, d.calibrated ? `q(z|x) may be the posterior (p = ${number(d.p, 2)}).` :
        `q(z|x) is not the posterior (p = ${number(d.p, 2)}; false alarms ${d.alarm}).`),
      el("div", { class: "row" }, d.ranks.slice(0, 12).map((r) => el("div", {}, el("h3", {}, r.name), histogram(r)))));
  }
}

function histogram(r) {
  const most = Math.max(...r.counts), w = 160 / r.counts.length;
  const label = `ranks of ${r.name}: ${r.counts.join(", ")}; p = ${number(r.p, 2)}`;
  const bar = (c, i) => {
    const high = 66 * c / most;
    return svg("rect", { x: 2 + i * w, y: 70 - high, width: w - 1, height: high, fill: "var(--accent)" });
  };
  return svg("svg", { width: 164, height: 74, viewBox: "0 0 164 74", role: "img", "aria-label": label },
    r.counts.map(bar), svg("path", { class: "line", d: `M2 70.5H162` }));
}
