"""A model's answer as the engines give it when they read the file themselves.

Run as a program, `python -m corpus.expected NAME`, it writes the answer down; an engine that dies
takes only this process with it.
"""

from __future__ import annotations

import json
import math
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from corpus.entry import FOLDER, Entry
from corpus.judging import difference, flat, tolerance
from corpus.precision import shortest_reals, steps
from corpus.reading import inputs_of
from crosschip.ir import Array

_LAST_DIGITS = 2.0**-22
"""Two steps of float32: what engines that compute in another order differ by."""

_FACTORS = 8
"""The most numbers that may be factors of sizes, one an axis."""

_CHANGES = 4
"""How often weights and inputs are changed, to see what hangs on their last digits."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What ONNX Runtime computes, or LiteRT from its own files, and how sure that is.

    Attributes:
        arrays: of all outputs, in order; what is no tensor is taken apart.
        spreads: for each array, how far the engine lies from it without graph optimizations
            (LiteRT: with its delegate), or with weights and inputs changed in their last digits,
            measured as `difference` does.
        openvino: how far OpenVINO lies from it when it reads the file; `None` if it does not.
    """

    arrays: Sequence[Array]
    spreads: Sequence[float]
    openvino: Sequence[float] | None

    def allowed(self, entry: Entry) -> list[float]:
        """How far another answer may lie from each array."""
        widened = entry.quantized or bool(entry.unstable)
        reals, known = shortest_reals(entry), steps(entry)
        if len(known) != len(self.arrays):  # an output is taken apart
            known = [0.0] * len(self.arrays)
        return [
            tolerance(
                array,
                quantized=entry.quantized,
                spread=spread if widened else 0.0,
                reals=reals,
                step=step,
            )
            for array, spread, step in zip(self.arrays, self.spreads, known, strict=True)
        ]


def path_of(entry: Entry) -> Path:
    """Where the answer is written down; another one if the file or the inputs change."""
    engine = "ai-edge-litert" if entry.file.suffix == ".tflite" else "onnxruntime"
    told = f"{entry}{entry.file.stat().st_size}{version(engine)}"
    return FOLDER / "expected" / f"{entry.name}-{zlib.crc32(told.encode()):08x}.npz"


def read(entry: Entry) -> Expected:
    """The answer that was written down."""
    with np.load(path_of(entry)) as stored:
        told = json.loads(str(stored["told"]))
        arrays = [stored[f"array{place}"] for place in range(len(told["spreads"]))]
    return Expected(arrays, told["spreads"], told["openvino"])


def ask(entry: Entry) -> Expected:
    """What the engine of the file's format says, without OpenVINO."""
    from corpus import litert

    inputs = inputs_of(entry)
    is_lite = entry.file.suffix == litert.SUFFIX
    arrays, *others = list(
        _lite_answers(entry.file, inputs) if is_lite else _answers(entry.file, inputs)
    )
    spreads = [max(apart) for apart in zip(*(difference(o, arrays) for o in others), strict=True)]
    return Expected(arrays, spreads, None)


def main(name: str) -> None:
    """Ask the engines and write down what they say."""
    from corpus.__main__ import entry_called

    entry = entry_called(name)
    expected = ask(entry)
    told: dict[str, Any] = {"spreads": expected.spreads, "openvino": None}
    _write(path_of(entry), expected.arrays, told)
    try:  # the answer stands if OpenVINO dies on the file
        told["openvino"] = difference(_openvino(entry.file, inputs_of(entry)), expected.arrays)
    except Exception as error:
        print(str(error).strip().splitlines()[0])
        return
    _write(path_of(entry), expected.arrays, told)


def _answers(path: Path, inputs: Mapping[str, Array]) -> Iterator[list[Array]]:
    """ONNX Runtime's answer, then answers that may as well be right."""
    yield _answer(path, inputs)
    yield _answer(path, inputs, optimized=False)
    for seed in range(_CHANGES):
        random = np.random.default_rng(seed)
        changed = {name: _changed(array, random) for name, array in inputs.items()}
        yield _answer(_with_changed_weights(path, random), changed)


def _lite_answers(path: Path, inputs: Mapping[str, Array]) -> Iterator[list[Array]]:
    """The answer of LiteRT's reference kernels, then answers that may as well be right."""
    from corpus import litert

    yield litert.answer(path, inputs)
    yield litert.answer(path, inputs, delegated=True)
    for seed in range(_CHANGES):
        random = np.random.default_rng(seed)
        yield litert.answer(path, {name: _changed(each, random) for name, each in inputs.items()})


def _write(path: Path, arrays: Sequence[Array], told: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    stored: dict[str, Any] = {f"array{place}": array for place, array in enumerate(arrays)}
    np.savez(path, **stored, told=np.array(json.dumps(told)))


def _answer(
    model: Path | bytes, inputs: Mapping[str, Array], *, optimized: bool = True
) -> list[Array]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = (
        levels.ORT_ENABLE_ALL if optimized else levels.ORT_DISABLE_ALL
    )
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    outputs: Sequence[Any] = session.run(None, dict(inputs))
    return [array for output in outputs for array in flat(output)]


def _openvino(path: Path, inputs: Mapping[str, Array]) -> list[Array]:
    from corpus import litert
    from crosschip.bench.peers import open_peer

    if path.suffix == litert.SUFFIX:
        inputs = litert.by_tensor(path, inputs)
    return [
        array for output in open_peer("openvino")(path, inputs, None)() for array in flat(output)
    ]


def _with_changed_weights(path: Path, random: np.random.Generator) -> bytes:
    """The model with weights in float32 changed in their last digits; not factors of sizes."""
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT and math.prod(tensor.dims) > _FACTORS:
            changed = _changed(onnx.numpy_helper.to_array(tensor), random)
            tensor.CopyFrom(onnx.numpy_helper.from_array(changed, tensor.name))
    return model.SerializeToString()


def _changed(array: Array, random: np.random.Generator) -> Array:
    """An array whose real numbers are changed in their last digits."""
    if array.dtype != np.float32:
        return array
    factors = random.uniform(1 - _LAST_DIGITS, 1 + _LAST_DIGITS, array.shape)
    with np.errstate(over="ignore"):  # of the largest number that there is
        return np.asarray(array * factors, np.float32)


if __name__ == "__main__":
    main(sys.argv[1])
