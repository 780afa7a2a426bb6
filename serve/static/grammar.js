// The panel of grammars: a sentence, its tree, samples, spans, and what a GFlowNet builds.
import { ask, el, guarded, number, percent } from "./common.js";
import { joined, pyramid, tree } from "./tree.js";

export async function grammarPanel(panel, about) {
  const node = panel("Parse a sentence", "grammar");
  const text = el("input", {
    id: "sentence", value: about.examples[0] ?? "", autocomplete: "off", spellcheck: "false", list: "examples",
  });
  const decodes = [["viterbi", "most probable derivation"], ["mbr", "most expected spans"],
    ["sample", "a draw from the posterior"]];
  if (about.gflownet) decodes.push(["gfn", "a draw from the GFlowNet"], ["gfn-mbr", "spans of GFlowNet draws"]);
  const decode = el("select", { id: "decode" }, decodes.map(([v, t]) => el("option", { value: v }, t)));
  const out = {};
  for (const name of ["tree", "chart", "samples", "steps"]) out[name] = el("div", { id: "out-" + name });
  let seed = 0;
  node.append(
    el("form", { onsubmit: (e) => { e.preventDefault(); guarded(node, all); } },
      el("label", { class: "grow" }, "Sentence", text), el("label", {}, "Tree", decode),
      el("button", { class: "main", id: "parse" }, "Parse")),
    el("p", { class: "note" },
      `${about.words} words, ${about.nonterminals.length} nonterminals, ${about.preterminals.length} preterminals.`,
      about.gflownet ? ` The GFlowNet reads up to ${about.longest_gfn} words.` : ""),
    el("datalist", { id: "examples" }, about.examples.map((s) => el("option", { value: s }))),
    out.tree, out.chart, out.samples, out.steps);
  decode.addEventListener("change", () => guarded(out.tree, best));

  async function best() {
    const { trees } = await ask("parse", { sentences: [text.value], decode: decode.value, seed });
    if (!trees[0]) throw new Error("type a sentence");
    if (trees[0].error) throw new Error(trees[0].error);
    show(trees[0]);
    return trees[0].words.length > 1;
  }

  function show(t) {
    if (t.words.length < 2) {
      out.tree.replaceChildren(el("p", { class: "note" }, "A sentence of one word has no tree: type another one."));
      for (const name of ["chart", "samples", "steps"]) out[name].replaceChildren();
      return;
    }
    const facts = [`log p(x) = ${number(t.log_prob, 6)}`];
    if (t.log_prob_derivation != null) facts.push(`log p(x,z,tags) = ${number(t.log_prob_derivation, 6)}`);
    if (t.log_prob_tree != null) facts.push(`log p(x,z) = ${number(t.log_prob_tree, 6)}`);
    if (t.expected_spans != null) {
      facts.push(`${number(t.expected_spans)} of ${t.words.length - 1} spans expected to be right`);
    }
    out.tree.replaceChildren(el("h3", {}, "Tree"),
      el("div", { class: "scroll tree" }, tree(t.words, t.spans, t.tags, t.tree)),
      el("p", { class: "note" }, facts.join(" · ")));
  }

  async function chart() {
    const c = await ask("chart", { sentence: text.value });
    out.chart.replaceChildren(el("h3", {}, "How probable spans are, in percent"),
      el("div", { class: "scroll pyramid" }, pyramid(c.words, c.spans)));
  }

  async function samples() {
    const rows = [];
    for (const by of about.gflownet ? ["exact", "gfn"] : ["exact"]) {
      const count = 50;
      const { samples: [s] } = await ask("sample", { sentences: [text.value], count, by, seed });
      if (s.error) { rows.push(el("p", { class: "note" }, s.error)); continue; }
      const name = by === "exact" ? "Draws from the exact posterior" : "Draws from the GFlowNet";
      const ess = s.effective_samples == null ? "" : `, worth ${number(s.effective_samples, 3)} exact ones; ` +
        `log p(x) is about ${number(s.log_prob_estimate, 5)}`;
      const row = (t) => el("tr", {}, el("td", { class: "n" }, String(t.count)), el("td", { class: "wrap" }, t.tree),
        el("td", {}, el("button", { type: "button", "aria-label": "Show " + t.tree, onclick: () => show(t) }, "Show")));
      rows.push(el("div", {}, el("h3", {}, `${name}: ${count}, of which ${s.trees.length} differ${ess}`),
        el("div", { class: "scroll" }, el("table", {},
          el("thead", {}, el("tr", {}, ["times", "tree"].map((t) => el("th", { scope: "col" }, t)), el("td", {}))),
          el("tbody", {}, s.trees.slice(0, 6).map(row))))));
    }
    const redraw = () => { seed++; guarded(out.samples, samples); guarded(out.steps, steps); };
    out.samples.replaceChildren(...rows, el("button", { type: "button", onclick: redraw }, "Draw again"));
  }

  async function steps() {
    if (!about.gflownet) return;
    const b = await ask("steps", { sentence: text.value, seed });
    const range = el("input", {
      type: "range", min: 0, max: b.steps.length, value: 0, id: "step", "aria-label": "step",
    });
    const picture = el("div", { class: "scroll tree" }), options = el("div", { class: "bars" });
    const said = el("p", { class: "note", "aria-live": "polite" });
    const spans = joined(b.words, b.steps);
    const draw = () => {
      const at = Number(range.value);
      picture.replaceChildren(tree(b.words, spans.slice(0, at), [], `the forest after ${at} steps`));
      const next = b.steps[at];
      said.textContent = next ? `After ${at} steps. What it can do next:` : `The tree is whole after ${at} steps.`;
      const isChosen = (o) => o.gap === next.chosen.gap && o.label === next.chosen.label;
      options.replaceChildren(...(next?.options ?? []).map((o) => el("div", { class: isChosen(o) ? "chosen" : "" },
        el("span", {}, `${name(o, spans.slice(0, at))}${o.label ? " under " + o.label : ""}`),
        el("meter", { value: o.probability, max: 1, "aria-label": "probability" }),
        el("span", {}, percent(o.probability)))));
    };
    const name = (o, made) => {
      const own = (i) => [...made].reverse().find((s) => s.first <= i && i <= s.last) ?? { first: i, last: i };
      const words = (s) => (s.first === s.last ? b.words[s.first] : `[${b.words[s.first]}…${b.words[s.last]}]`);
      return `${words(own(o.gap))} + ${words(own(o.gap + 1))}`;
    };
    const move = (by) => { range.value = Number(range.value) + by; draw(); };
    range.addEventListener("input", draw);
    draw();
    out.steps.replaceChildren(el("h3", {}, "What the GFlowNet builds, step by step"),
      el("form", { onsubmit: (e) => e.preventDefault() },
        el("button", { type: "button", onclick: () => move(-1) }, "Back"), range,
        el("button", { type: "button", id: "next-step", onclick: () => move(1) }, "Next")), said, options, picture);
  }

  async function all() {
    for (const next of (await best()) ? [chart, samples, steps] : []) await next();
  }

  rulesPanel(panel, about);
  await guarded(node, all);
}

function rulesPanel(panel, about) {
  const node = panel("Rules of a symbol", "rules");
  const symbols = [...about.nonterminals, ...about.preterminals];
  const symbol = el("select", { id: "symbol" }, symbols.map((s) => el("option", { value: s }, s)));
  const parents = ["", "ROOT", ...about.nonterminals];
  const parent = el("select", {}, parents.map((s) => el("option", { value: s }, s || "any")));
  const out = el("div", { class: "scroll" });
  const load = () => guarded(out, async () => {
    const request = { symbol: symbol.value, most: 15 };
    if (about.kind === "ncfg" && parent.value) request.parent = parent.value;
    const r = await ask("rules", request);
    const rule = (one) => el("div", {},
      el("span", {}, `${r.symbol} → ${one.right.join(" ")}`),
      el("meter", { value: one.probability, max: 1, "aria-label": "probability" }),
      el("span", {}, percent(one.probability)));
    out.replaceChildren(el("div", { class: "bars" }, r.rules.map(rule)),
      el("p", { class: "note" }, `${r.total} rules in all.`));
  });
  symbol.addEventListener("change", load);
  parent.addEventListener("change", load);
  node.append(el("form", { onsubmit: (e) => e.preventDefault() }, el("label", {}, "Symbol", symbol),
    about.kind === "ncfg" ? el("label", {}, "Below", parent) : null), out);
  load();
}
