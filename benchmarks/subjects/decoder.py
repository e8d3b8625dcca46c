"""A text of 64 tokens from a decoder with a key-value cache, against the engines' own.

A decoder of 4 layers, 384 wide, computes each token from the previous one and the keys and values
of all previous tokens. crosschip stores these in a session. `onnxruntime` called directly binds
outputs of one run to inputs of the next (its I/O binding). `openvino` called directly passes
tensors from request to request, or has them as states of a model that its own pass has made
stateful. All read the same file, compute in float32 with one thread, and run in turn, a text at a
time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import numpy as np
import onnx

import crosschip
from benchmarks.comparison import Estimate, compare
from benchmarks.decoders import DEPTH, HEADS, LAYERS, decoder
from benchmarks.subject import Column, Row
from crosschip.bench.timing import Run
from crosschip.ir import Array

LIMIT = 1.0
REQUIREMENT = f"at least {LIMIT:g} times the speed of ONNX Runtime with its I/O binding"

_TOKENS = 64
_FIRST = np.array([[5]], np.int64)
_MASK = np.ones((1, _TOKENS), np.int64)
_NAMES = [f"{layer}.{of}" for layer in range(LAYERS) for of in ("key", "value")]
_READS = [f"past_key_values.{name}" for name in _NAMES]
_MAKES = [f"present.{name}" for name in _NAMES]
_NOTHING = np.zeros((1, HEADS, 0, DEPTH), np.float32)

_OPENVINO = {
    "PERFORMANCE_HINT": "LATENCY",
    "INFERENCE_NUM_THREADS": 1,
    "INFERENCE_PRECISION_HINT": "f32",
}

Step = Callable[[Array, Array], Array]
"""The next token, from the one before and a mask of all."""


@dataclass(frozen=True)
class Decoder(Row):
    """One engine."""

    device: Annotated[str, Column("device")]
    way: Annotated[str, Column("the engine's own call")]
    engine_ms: Annotated[float, Column("engine ms/token", ".3f")]
    ours_ms: Annotated[float, Column("crosschip ms/token", ".3f")]
    ratio: Annotated[Estimate, Column("ratio", ".3f")]

    @property
    def met(self) -> bool | None:
        return self.ratio.value >= LIMIT if self.device == "onnxruntime" else None


def measure(*, quick: bool) -> Iterator[Decoder]:
    """Each way to call each engine."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "decoder.onnx")
        onnx.save(decoder(), path)
        for (device, way), direct in _DIRECT.items():
            expected = _text(direct(path)())
            if _text(_ours(path, device)()) != expected:
                raise ValueError(f"{device} makes another text in our session")
            result = compare(
                lambda device=device: _run(_ours(path, device)),  # type: ignore[misc]
                lambda direct=direct: _run(direct(path)),  # type: ignore[misc]
                seconds=1.0 if quick else 6.0,
                blocks=2 if quick else 7,
                error=0.5 if quick else 0.005,
                patience=0 if quick else 120,
            )
            a_token = 1 / _TOKENS
            figures = result.direct_ms * a_token, result.ours_ms * a_token, result.ratio
            yield Decoder(device, way, *figures)


def _text(step: Step) -> list[int]:
    """The tokens that come after the first."""
    token, made = _FIRST, []
    for count in range(1, _TOKENS + 1):
        token = step(token, np.ascontiguousarray(_MASK[:, :count]))
        made.append(int(token[0, 0]))
    return made


def _run(begin: Callable[[], Step]) -> Run:
    return lambda: _text(begin())


def _ours(path: Path, device: str) -> Callable[[], Step]:
    compiled = crosschip.compile(path, [device], threads=1, cache=False)
    session = compiled.session()

    def step(token: Array, mask: Array) -> Array:
        return session.run({"input_ids": token, "attention_mask": mask})["next"]

    def begin() -> Step:
        session.reset()
        return step

    return begin


def _onnxruntime(path: Path) -> Callable[[], Step]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    value_of = onnxruntime.OrtValue.ortvalue_from_numpy

    def begin() -> Step:
        binding = session.io_binding()
        kept = [value_of(_NOTHING) for _ in _NAMES]

        def step(token: Array, mask: Array) -> Array:
            nonlocal kept
            binding.bind_cpu_input("input_ids", token)
            binding.bind_cpu_input("attention_mask", mask)
            for name, value in zip(_READS, kept, strict=True):
                binding.bind_ortvalue_input(name, value)
            for name in ("logits", "next", *_MAKES):
                binding.bind_output(name, "cpu")
            session.run_with_iobinding(binding)
            logits, best, *kept = binding.get_outputs()
            logits.numpy()
            made: Array = best.numpy()
            return made

        return step

    return begin


def _openvino(path: Path) -> Callable[[], Step]:
    import openvino

    config = _OPENVINO
    request = openvino.Core().compile_model(path, "CPU", config).create_infer_request()

    def begin() -> Step:
        kept: Mapping[str, openvino.Tensor] = {
            name: openvino.Tensor(_NOTHING.copy()) for name in _READS
        }
        spare = {name: openvino.Tensor(openvino.Type.f32, [0, 0, 0, 0]) for name in _READS}

        def step(token: Array, mask: Array) -> Array:
            nonlocal kept, spare
            request.set_tensor("input_ids", openvino.Tensor(token, shared_memory=True))
            request.set_tensor("attention_mask", openvino.Tensor(mask, shared_memory=True))
            for read, made in zip(_READS, _MAKES, strict=True):
                request.set_tensor(read, kept[read])
                request.set_tensor(made, spare[read])
            request.infer(share_outputs=True)
            kept, spare = spare, kept
            request.get_tensor("logits").data.copy()
            best: Array = request.get_tensor("next").data.copy()
            return best

        return step

    return begin


def _stateful_openvino(path: Path) -> Callable[[], Step]:
    import openvino
    from openvino.passes import MakeStateful, Manager

    core = openvino.Core()
    model = core.read_model(path)
    manager = Manager()
    manager.register_pass(MakeStateful(dict(zip(_READS, _MAKES, strict=True))))
    manager.run_passes(model)
    config = _OPENVINO
    request = core.compile_model(model, "CPU", config).create_infer_request()

    def step(token: Array, mask: Array) -> Array:
        request.set_tensor("input_ids", openvino.Tensor(token, shared_memory=True))
        request.set_tensor("attention_mask", openvino.Tensor(mask, shared_memory=True))
        request.infer(share_outputs=True)
        request.get_tensor("logits").data.copy()
        best: Array = request.get_tensor("next").data.copy()
        return best

    def begin() -> Step:
        for state in request.query_state():
            state.state = openvino.Tensor(_NOTHING.copy())
        return step

    return begin


_DIRECT: Mapping[tuple[str, str], Callable[[Path], Callable[[], Step]]] = {
    ("onnxruntime", "I/O binding"): _onnxruntime,
    ("openvino", "tensors handed on"): _openvino,
    ("openvino", "its own states"): _stateful_openvino,
}
