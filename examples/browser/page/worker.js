// Runs the Go program beside the page, which it tells how it goes (see train_js.go).
importScripts("wasm_exec.js");

const go = new Go();
WebAssembly.instantiateStreaming(fetch("train.wasm"), go.importObject).then(
  ({ instance }) => go.run(instance),
  (e) => postMessage(JSON.stringify({ wrong: String(e) })),
);
