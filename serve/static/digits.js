// The panel of images as codes: draw, watch codes being chosen, change one, decode, sample.
import { ask, el, guarded, number, percent, svg } from "./common.js";

// seven is a stroke for those who cannot draw, in parts of the image.
const seven = [[0.25, 0.25], [0.5, 0.24], [0.74, 0.25], [0.62, 0.45], [0.5, 0.65], [0.44, 0.84]];

const still = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// paint puts pixels from 0 to 1 on a canvas.
function paint(canvas, pixels, { height, width }) {
  canvas.width = width;
  canvas.height = height;
  const image = new ImageData(width, height);
  pixels.forEach((v, i) => image.data.set([255 * v, 255 * v, 255 * v, 255], 4 * i));
  canvas.getContext("2d").putImageData(image, 0, 0);
}

export async function digitsPanel(panel, about) {
  const { height, width, rows, columns, codes: kinds } = about;
  const node = panel("Draw an image", "digits");
  let pixels = new Array(height * width).fill(0), codes = null, at = -1, turn = 0;
  const drawn = el("canvas", {
    class: "draw", id: "draw", tabindex: 0,
    role: "application", "aria-label": "Drawing area", "aria-describedby": "draw-help",
  });
  const help = el("p", { class: "note", id: "draw-help" },
    "Draw with mouse or finger; or move with arrow keys, ink with the space bar, and encode with Enter.");
  const where = el("span", { class: "unseen", id: "draw-at", role: "status" });
  const seen = el("canvas", { class: "seen", id: "decoded", role: "img", "aria-label": "The codes, decoded" });
  const grid = el("div", { class: "codes", id: "codes", role: "group", "aria-label": "Codes, row by row" });
  const choices = el("div", { class: "choices", id: "choices", role: "group", "aria-label": "Alternatives" });
  const said = el("p", { class: "note", id: "digit-facts", "aria-live": "polite" });
  const how = el("select", { "aria-label": "How codes are chosen" },
    el("option", { value: "" }, "the most probable codes"),
    el("option", { value: "draw" }, "codes drawn from q(z|x)"));
  const show = () => paint(drawn, pixels, about);

  grid.style.gridTemplateColumns = `repeat(${columns}, auto)`;
  const example = () => {
    pixels.fill(0);
    seven.forEach((p, i) => i && line(seven[i - 1], p));
    encode();
  };
  const clear = () => {
    pixels.fill(0);
    codes = null;
    turn++;
    show();
    for (const one of [grid, choices, said]) one.replaceChildren();
  };
  const button = (text, f, more = {}) => el("button", { type: "button", onclick: () => f(), ...more }, text);
  node.append(el("form", { onsubmit: (e) => e.preventDefault() },
    button("Draw a seven", example, { id: "seven" }), button("Clear", clear),
    how, button("Encode", () => encode(), { class: "main" }), button("Estimate log p(x)", () => weigh())),
  el("div", { class: "row" },
    el("div", { class: "area" }, el("h3", {}, "Draw here"), drawn, where, help),
    el("div", {}, el("h3", {}, "Codes: click one to change it"), grid, choices),
    el("div", {}, el("h3", {}, "Decoded"), seen)), said);

  // dot inks the pixels around a place, in parts of the image.
  function dot([x, y], radius = 0.045) {
    for (let i = 0; i < height; i++) {
      for (let k = 0; k < width; k++) {
        if (Math.hypot((k + 0.5) / width - x, (i + 0.5) / height - y) < radius) pixels[i * width + k] = 1;
      }
    }
  }
  function line(a, b) {
    for (let t = 0; t <= 1; t += 0.05) dot([a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1])]);
    show();
  }

  let last = null;
  const place = (e) => {
    const box = drawn.getBoundingClientRect();
    return [(e.clientX - box.left) / box.width, (e.clientY - box.top) / box.height];
  };
  drawn.addEventListener("pointerdown", (e) => {
    drawn.setPointerCapture(e.pointerId);
    last = place(e);
    line(last, last);
  });
  drawn.addEventListener("pointermove", (e) => {
    if (!last) return;
    const next = place(e);
    line(last, next);
    last = next;
  });
  for (const end of ["pointerup", "pointercancel"]) {
    drawn.addEventListener(end, () => {
      if (!last) return;
      last = null;
      encode();
    });
  }
  let cursor = [0.5, 0.5];
  drawn.addEventListener("keydown", (e) => {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const move = moves[e.key];
    if (move) cursor = cursor.map((v, i) => Math.min(0.98, Math.max(0.02, v + move[i] / 28)));
    if (e.key === " ") dot(cursor);
    if (e.key === "Enter") encode();
    if (!move && e.key !== " " && e.key !== "Enter") return;
    e.preventDefault();
    show();
    const c = drawn.getContext("2d"), [column, row] = [Math.floor(cursor[0] * width), Math.floor(cursor[1] * height)];
    where.textContent = `row ${row + 1}, column ${column + 1}${pixels[row * width + column] ? ", inked" : ""}`;
    c.fillStyle = "#e33";
    c.fillRect(column, row, 1, 1);
  });

  const encode = () => guarded(null, async () => {
    const mine = ++turn;
    const a = await ask("choose", { image: pixels, draw: how.value === "draw", seed: mine });
    if (mine === turn) await reveal(a, mine);
  });

  // reveal shows codes one after the other, as they are chosen.
  async function reveal(a, mine) {
    codes = a.codes;
    at = -1;
    choices.replaceChildren();
    grid.dataset.ready = "";
    for (let t = still() ? codes.length : 1; t <= codes.length; t++) {
      if (mine !== turn) return;
      list(a, t);
      if (t < codes.length) await pause(Math.min(160, 1600 / codes.length));
    }
    grid.dataset.ready = "1";
    tell(a);
  }

  function tell(a) {
    paint(seen, a.decoded, about);
    const logQ = a.log_q == null ? "" : ` · log q(z|x) = ${number(a.log_q, 4)}`;
    said.textContent = `log p(x|z) = ${number(a.log_p, 5)}${logQ}`;
  }

  function list(a, chosen) {
    const waits = (t) => (about.ranks ? about.ranks[t] : t) >= chosen; // some policies do not go row by row
    const label = (k, t) => `code ${k} at row ${Math.floor(t / columns) + 1}, column ${t % columns + 1}`;
    grid.replaceChildren(...codes.map((k, t) => el("button", {
      type: "button", class: waits(t) ? "waiting" : "", disabled: waits(t),
      "aria-pressed": t === at ? "true" : "false", "aria-label": waits(t) ? "not chosen yet" : label(k, t),
      onclick: () => { at = t; list(a, codes.length); alternatives(a, t); grid.children[t].focus(); },
    }, el("span", { class: "number" }, waits(t) ? "·" : String(k)),
    !waits(t) && a.choices ? bars(a.choices[t], k) : null)));
  }

  function bars(p, chosen) {
    const w = 48 / p.length;
    const bar = (v, k) => svg("rect", {
      class: k === chosen ? "on" : "", x: k * w, y: 17 - 17 * v, width: Math.max(w - 0.5, 0.5), height: 17 * v,
    });
    return svg("svg", { viewBox: "0 0 48 17", "aria-hidden": "true" }, p.map(bar));
  }

  function alternatives(a, t) {
    const order = [...Array(kinds).keys()];
    if (a.choices) order.sort((x, y) => a.choices[t][y] - a.choices[t][x]);
    choices.replaceChildren(...order.slice(0, 24).map((k) => el("button", {
      type: "button", "aria-pressed": k === codes[t] ? "true" : "false", onclick: () => change(t, k),
    }, `${k}`, a.choices ? ` · ${percent(a.choices[t][k])}` : "")));
  }

  const change = (t, k) => guarded(null, async () => {
    const mine = ++turn, next = [...codes];
    next[t] = k;
    const a = await ask("choose", { image: pixels, codes: next });
    if (mine !== turn) return;
    codes = a.codes;
    at = t;
    list(a, codes.length);
    alternatives(a, t);
    grid.children[t].focus();
    tell(a);
  });

  const weigh = () => guarded(node, async () => {
    const w = await ask("weigh", { image: pixels, samples: 500 });
    said.textContent = `log p(x) is about ${number(w.log_prob, 5)}, from ${w.samples} latents of q(z|x) ` +
      `that are worth ${number(w.effective_samples, 3)} exact ones, ${number(w.distinct, 4)} of them different; ` +
      `mean log-weight ${number(w.elbo, 5)}`;
  });

  samplePanel(panel, about, (image) => {
    pixels = image.map((v) => (v > 0.5 ? 1 : 0));
    show();
    encode();
  });
  show();
  paint(seen, pixels, about);
}

function samplePanel(panel, about, use) {
  const node = panel("Samples of the prior", "prior");
  const out = el("div", { class: "small", id: "prior-samples" });
  let seed = 0;
  const draw = () => guarded(out, async () => {
    const { codes } = await ask("sample", { count: 24, seed: seed++ });
    const { images } = await ask("decode", { codes });
    out.replaceChildren(...images.map((image, i) => {
      const canvas = el("canvas", { "aria-hidden": "true" }), label = "encode the image of codes " + codes[i].join(" ");
      paint(canvas, image, about);
      return el("button", { type: "button", "aria-label": label, onclick: () => use(image) }, canvas);
    }));
  });
  node.append(el("form", { onsubmit: (e) => { e.preventDefault(); draw(); } },
    el("button", { class: "main", id: "sample" }, "Sample")),
  el("p", { class: "note" }, "Only a learned prior gives images like those of the data. Click one to encode it."), out);
}
