// Runs the Go program beside the page, which it tells how it goes (see train_js.go).
importScripts("wasm_exec.js");

const wrong = (text) => postMessage(JSON.stringify({ wrong: text }));

const go = new Go();
go.exit = (code) => { if (code !== 0) wrong(`The program has ended with exit code ${code}.`); };
WebAssembly.instantiateStreaming(fetch("train.wasm"), go.importObject).then(({ instance }) => go.run(instance))
  .catch((e) => wrong(String(e)));
