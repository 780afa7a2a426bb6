"""Reads what gfnem writes: runs, their metrics and parameters, and grammars. One file; needs Python 3.11 and numpy.

    import gfnem

    run = gfnem.Run("runs/best")
    run.config["model"]["sigma"]           # run.toml, as dictionaries
    run.info["seed"]                       # run.json: where the run came from
    steps, loss = run.curve("loss")        # metrics.jsonl, as arrays
    run.parameters["/theta/means"]         # what was learned, as arrays by name

    g = gfnem.Grammar.load("g.json")       # of "gfnem grammar export RUN --out g.json"
    g.rules[0, 2, 3]                       # the probability that nonterminal 0 becomes symbols 2 and 3

Files that do not match their hashes are an error, as in gfnem itself. Nothing is written.
"""

import functools
import hashlib
import json
import math
import pathlib
import sys
import tomllib

import numpy

_DTYPES = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "I64": "<i8", "U32": "<u4", "U64": "<u8", "U8": "u1", "BOOL": "?"}
_NOT_FINITE = {"NaN": math.nan, "Inf": math.inf, "-Inf": -math.inf}


class Run:
    """The folder of a run, which may still be going on. Files are read when they are asked for."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        if not (self.folder / "run.json").is_file():
            raise FileNotFoundError(f"{folder} is not the folder of a run: it has no run.json")

    @functools.cached_property
    def info(self):
        """Where the run came from: task, command, seed, backend, hashes of data, version of the program."""
        return json.loads((self.folder / "run.json").read_text("utf-8"))

    @property
    def changes(self):
        """How the configuration was changed when the run was resumed, first things first."""
        path = self.folder / "changes.json"
        return json.loads(path.read_text("utf-8"))["changes"] if path.exists() else []

    @property
    def config(self):
        """The configuration, with all keys, as it is now."""
        data = (self.folder / "run.toml").read_bytes()
        changes = self.changes
        _check(self.folder / "run.toml", data, changes[-1]["config_after"] if changes else self.info["config"])
        return tomllib.loads(data.decode("utf-8"))

    @property
    def metrics(self):
        """What was logged: a dictionary for each line, each with its "step". A line that is being written is left out."""
        lines = (self.folder / "metrics.jsonl").read_text("utf-8").split("\n")[:-1]
        return [{k: _NOT_FINITE.get(v, v) for k, v in json.loads(line).items()} for line in lines]

    def curve(self, name):
        """The steps at which a metric was logged, and its values, as two arrays."""
        points = [(line["step"], line[name]) for line in self.metrics if name in line]
        if not points:
            raise KeyError(f"{self.folder} has no metric {name!r}")
        return numpy.array([p[0] for p in points]), numpy.array([p[1] for p in points], float)

    @property
    def parameters(self):
        """What a training that has ended has learned: arrays by name. That is its best state, where it keeps one."""
        outputs = json.loads((self.folder / "outputs.json").read_text("utf-8"))
        path = self.folder / "parameters.safetensors"
        data = path.read_bytes()
        _check(path, data, outputs["files"][path.name]["sha256"])
        return safetensors(data)

    def checkpoint(self):
        """The newest checkpoint: its step, and all that the training goes on from, as arrays by name."""
        newest = max((self.folder / "state").glob("[0-9]" * 12), default=None)
        if newest is None:
            raise FileNotFoundError(f"{self.folder} has no checkpoint yet")
        manifest = json.loads((newest / "manifest.json").read_text("utf-8"))
        path = newest / "arrays.safetensors"
        data = path.read_bytes()
        _check(path, data, manifest["files"][path.name]["sha256"])
        return manifest["step"], safetensors(data)


def safetensors(data):
    """The arrays of a file in the format safetensors, given its bytes."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    arrays = {}
    for name, about in header.items():
        if name != "__metadata__":
            begin, end = about["data_offsets"]
            part = data[8 + size + begin : 8 + size + end]
            arrays[name] = numpy.frombuffer(part, _DTYPES[about["dtype"]]).reshape(about["shape"])
    return arrays


class Grammar:
    """The probabilities of a grammar. Symbols are nonterminals, followed by preterminals.

    root[A]          a sentence begins with nonterminal A
    rules[A, B, C]   nonterminal A becomes symbols B and C
    emit[T, w]       preterminal T becomes a word

    In a grammar of kind "ncfg", where a rule sees the symbol above, it is rules[A, P, B, C] and emit[T, Q, w]. There Q is
    the number of a nonterminal; P is 0 at the top of a sentence, and else one more than the number of a nonterminal.
    """

    def __init__(self, tables):
        self.kind = tables["kind"]
        self.nonterminals, self.preterminals, self.words = (tables[k] for k in ("nonterminals", "preterminals", "words"))
        self.symbols = self.nonterminals + self.preterminals
        n, t, s, v = (len(x) for x in (self.nonterminals, self.preterminals, self.symbols, self.words))
        at = {name: i for i, name in enumerate(self.symbols)}
        above = {name: i for i, name in enumerate(["ROOT"] + self.nonterminals)}
        word = {name: i for i, name in enumerate(self.words)}
        pair = lambda names: tuple(at[name] for name in names.split(" "))
        head = lambda name: (at[name],)
        self.root, self.rules, self.emit = numpy.zeros(n), numpy.zeros((n, s, s)), numpy.zeros((t, v))
        if self.kind == "ncfg":
            self.rules, self.emit = numpy.zeros((n, n + 1, s, s)), numpy.zeros((t, n, v))
            head = lambda name: (at[name.split("|")[0]], above[name.split("|")[1]])
        for name, p in tables["root"].items():
            self.root[at[name]] = p
        for name, row in tables["binary"].items():
            for names, p in row.items():
                self.rules[head(name) + pair(names)] = p
        for name, row in tables["emit"].items():
            first, *rest = head(name)
            for w, p in row.items():
                self.emit[(first - n, *(above - 1 for above in rest), word[w])] = p

    @classmethod
    def load(cls, path):
        """Reads a file that "gfnem grammar export RUN --out FILE" has made."""
        return cls(json.loads(pathlib.Path(path).read_text("utf-8")))


def _check(path, data, sha256):
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ValueError(f"{path} is not what was written: its hash is another one")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: python3 gfnem.py RUN")
    run = Run(sys.argv[1])
    print(f"{run.info['task']}, seed {run.info['seed']}, {run.info['created']}")
    metrics = run.metrics
    if metrics:
        print("last metrics:", json.dumps(metrics[-1]))
    step, arrays = run.checkpoint()
    print(f"step {step}:")
    for name, array in arrays.items():
        print(f"  {name} {array.dtype} {list(array.shape)}")


if __name__ == "__main__":
    main()
