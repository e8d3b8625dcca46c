"""Export a model of the corpus, and compare what is written with the original."""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from corpus.__main__ import entry_called
from corpus.expected import ask, path_of, read
from corpus.judging import difference
from corpus.reading import inputs_of

import crosschip
from crosschip.exporters import export, exporters
from crosschip.hal.operation_cost import multiply_adds
from crosschip.ir import Array, Error, Model
from crosschip.passes.specialize import Specialize

_MAX_MULTIPLY_ADDS = 3e8
"""The reference model of TOSA computes one number at a time."""

_DEVICES = (["reference"], ["onnxruntime", "reference"])

Run = Callable[[Path, Model, Mapping[str, Array]], Iterator[Sequence[Array]]]
"""Yields the answers to inputs that a file gives in each way to run it."""


def main(name: str, format: str) -> None:
    """Print the number of operations, the error and what is allowed, or a note."""
    try:
        figures = _figures(name, format)
    except (Error, ValueError) as problem:
        figures = {"note": str(problem).splitlines()[0][:300]}
    print(json.dumps(figures))


def _figures(name: str, format: str) -> dict[str, object]:
    entry = entry_called(name)
    inputs = inputs_of(entry)
    shapes = {name: array.shape for name, array in inputs.items()}
    model = Specialize(shapes)(crosschip.load(entry.file))
    if format == "tosa" and sum(map(multiply_adds, model.operations)) > _MAX_MULTIPLY_ADDS:
        return {"note": "too large"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"model.{format}")
        operations = export(model, path, verification=False).operations
        run = _RUNS[format]
        answers = list(run(path, model, {name: inputs[name] for name in model.inputs}))
    expected = read(entry) if path_of(entry).exists() else ask(entry)
    pairs = [
        (largest, limit)
        for answer in answers
        for largest, limit in zip(
            difference(answer, expected.arrays), expected.allowed(entry), strict=True
        )
    ]
    error, allowed = max(pairs, key=lambda pair: pair[0] - pair[1])
    return {"operations": operations, "error": error, "allowed": allowed}


def _run_tflite(path: Path, model: Model, inputs: Mapping[str, Array]) -> Iterator[Sequence[Array]]:
    exported = crosschip.load(path)
    for devices in _DEVICES:
        with crosschip.compile(exported, devices, cache=False) as compiled:
            yield list(compiled.run(inputs).values())


def _run_tosa(path: Path, model: Model, inputs: Mapping[str, Array]) -> Iterator[Sequence[Array]]:
    yield exporters()["tosa"].run(path.read_bytes(), model, list(inputs.values()))


_RUNS: Mapping[str, Run] = {"tflite": _run_tflite, "tosa": _run_tosa}

if __name__ == "__main__":
    main(*sys.argv[1:])
