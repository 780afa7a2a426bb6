// What all pages share: elements, requests, numbers, colours.

// el makes an element: attributes, properties that begin with "on", children (elements or text).
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// svg makes an element of a picture.
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((c) => c != null));
  return node;
}

export const byId = (id) => document.getElementById(id);

// get fetches JSON; post sends JSON and returns the response. Both throw an Error with the server's line.
export async function get(path) { return (await checked(await fetch(path))).json(); }

export async function post(path, body) {
  return checked(await fetch(path, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  }));
}

async function checked(response) {
  if (response.ok) return response;
  let text = response.statusText;
  try { text = (await response.json()).error.message; } catch { /* not from us */ }
  throw new Error(text);
}

// ask asks the model of the page's run.
export async function ask(question, request = {}) {
  const run = byId("main").dataset.run;
  return (await post("/api/" + question, { run, ...request })).json();
}

// problem shows a line about what went wrong, or none.
export function problem(error) {
  const at = byId("problem");
  at.hidden = !error;
  at.textContent = error ? error.message || String(error) : "";
}

// guarded calls f and shows what goes wrong; meanwhile a node looks busy.
export async function guarded(node, f) {
  busy(node, 1);
  try {
    const out = await f();
    problem(null);
    return out;
  } catch (e) {
    problem(e);
  } finally {
    busy(node, -1);
  }
}

// busy counts what a node waits for.
function busy(node, more) {
  if (!node) return;
  node.dataset.waits = Number(node.dataset.waits ?? 0) + more;
  const some = node.dataset.waits > 0;
  node.classList.toggle("busy", some);
  node.setAttribute("aria-busy", String(some));
}

// number writes a number with a few digits.
export function number(x, digits = 4) {
  if (x == null || !Number.isFinite(x)) return "–";
  if (x === 0) return "0";
  const size = Math.abs(x);
  return size >= 1e6 || size < 1e-4 ? x.toExponential(digits - 1) : String(Number(x.toPrecision(digits)));
}

export function percent(p) {
  const text = p >= 0.9995 ? "100" : p < 1e-4 ? "<0.01" : (100 * p).toPrecision(p < 0.1 ? 2 : 3);
  return text + " %";
}

// colour is the i-th of many, told apart by the golden angle; it follows light and dark.
export function colour(i, alpha = 1) {
  const light = getComputedStyle(document.documentElement).getPropertyValue("--light");
  return `hsl(${(212 + i * 137.5) % 360} 70% ${light} / ${alpha})`;
}

export const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// later calls f a little after the last of several calls.
export function later(f, ms) {
  let timer = 0;
  return () => { clearTimeout(timer); timer = setTimeout(f, ms); };
}

// tryAgain is how long a page waits for the server to take it as a listener, in milliseconds.
const tryAgain = 10000;

// live calls f when the server says that something has changed, once at a time and not more often than every second,
// and says in the page's head how things stand.
export function live(f) {
  const at = byId("live");
  let running = false, again = false, version = null, events = null;
  const next = async () => {
    if (running) { again = true; return; }
    running = true;
    do {
      again = false;
      await f();
      await new Promise((done) => setTimeout(done, 1000));
    } while (again);
    running = false;
  };
  const listen = () => {
    events = new EventSource("/api/events");
    events.onmessage = (e) => {
      const now = JSON.parse(e.data);
      at.textContent = now.reading > 0 ? `reading ${now.reading} runs` : "live";
      if (version !== null && version !== now.version) next();
      version = now.version;
    };
    events.onerror = () => {
      at.textContent = "not connected";
      if (events.readyState === EventSource.CLOSED) setTimeout(listen, tryAgain); // refused: too many listen
    };
  };
  listen();
  addEventListener("pagehide", () => events.close());
}

// rove makes many nodes one stop of the tab key: arrow keys, Home and End go from one to the next.
export function rove(nodes) {
  let at = 0;
  const go = (i) => {
    nodes[at].setAttribute("tabindex", "-1");
    at = Math.max(0, Math.min(nodes.length - 1, i));
    nodes[at].setAttribute("tabindex", "0");
  };
  nodes.forEach((node, i) => {
    node.setAttribute("tabindex", "-1");
    node.addEventListener("focus", () => go(i));
    node.addEventListener("keydown", (e) => {
      const to = {
        ArrowLeft: at - 1, ArrowUp: at - 1, ArrowRight: at + 1, ArrowDown: at + 1, Home: 0, End: nodes.length - 1,
      }[e.key];
      if (to == null) return;
      e.preventDefault();
      go(to);
      nodes[at].focus();
    });
  });
  if (nodes.length > 0) go(0);
}
