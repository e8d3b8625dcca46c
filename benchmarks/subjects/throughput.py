"""Throughput of several runs at once, against the engine's own throughput mode.

As many runs are in flight as there are cores, and crosschip knows it (`in_flight`); batch 1,
float32, every run gives its caller outputs of their own. OpenVINO itself is compiled for
`THROUGHPUT` and driven by its `AsyncInferQueue`; ONNX Runtime itself has a session for each of as
many threads, with its share of the cores. Of crosschip, one compiled model is called by as many
threads, or one thread submits requests: another one as soon as any has ended, so that there are
always as many in flight.

The rows of two devices are about pipelining: a network whose first half runs on one device and
whose second half on another, with one thread each. With two requests in flight, the first half of
one overlaps the second half of the other; it is compared with one request after the other, and
twice as fast is the most that there can be, if both halves took the same time and nothing else ran.

What is timed is a number of runs together, from the first to the last; competitors take turns, and
the ratio is the median over blocks, as for latency.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import Annotated

import crosschip
from benchmarks.comparison import Comparison, Estimate, Open, compare
from benchmarks.engines import engines
from benchmarks.models import ModelFile, model_file
from benchmarks.subject import Column, Row
from crosschip.bench.timing import Run
from crosschip.ir import Array
from crosschip.runtime.compiled import CompiledModel
from crosschip.runtime.requests import Request

LIMIT = 0.95
REQUIREMENT = f"at least {LIMIT:g} of the throughput of the engine called directly"

_NETWORKS = {"ResNet50": 4, "MobileNetV3-small": 32}
"""For each network: how many runs are timed together."""

_FORMAT = ".onnx"
_PIPELINE = ("openvino", "onnxruntime")


@dataclass(frozen=True)
class Throughput(Row):
    """One network on one device, driven in one way."""

    device: Annotated[str, Column("device")]
    network: Annotated[str, Column("network")]
    way: Annotated[str, Column("crosschip")]
    against: Annotated[str, Column("compared with")]
    theirs: Annotated[float, Column("that runs/s", ".1f")]
    ours: Annotated[float, Column("crosschip runs/s", ".1f")]
    ratio: Annotated[Estimate, Column("ratio", ".3f")]
    others: Annotated[float, Column("others used", ".0%")]

    @property
    def met(self) -> bool | None:
        return None if "," in self.device else self.ratio.value >= LIMIT


def measure(*, quick: bool) -> Iterator[Throughput]:
    """Each network on each device with an engine, then on two devices."""
    for network, count in _NETWORKS.items():
        file = model_file(network, _FORMAT)
        for device in engines():
            for way in _WAYS:
                yield _on_device(file, device, way, count, quick=quick)
        if set(_PIPELINE) <= set(engines()):
            yield _pipelined(file, count, quick=quick)


def _on_device(file: ModelFile, device: str, way: str, count: int, *, quick: bool) -> Throughput:
    at_once = max(2, os.cpu_count() or 1)
    against, open_direct = _DIRECT[device]

    def ours() -> Run:
        return _WAYS[way](_compiled(file, device, at_once), file, at_once, count)

    found = _compare(ours, partial(open_direct, file, at_once, count), quick=quick)
    return _row(device, file.network, way.format(at_once), against, count, found)


def _pipelined(file: ModelFile, count: int, *, quick: bool) -> Throughput:
    def ours(at_once: int) -> Run:
        return _submitting(_halved(file, at_once), file, at_once, count)

    found = _compare(partial(ours, 2), partial(ours, 1), quick=quick)
    told = "2 requests in flight", "1 request in flight"
    return _row(", ".join(_PIPELINE), file.network, *told, count, found)


def _row(
    device: str, network: str, way: str, against: str, count: int, found: Comparison
) -> Throughput:
    theirs, ours = (count * 1e3 / ms for ms in (found.direct_ms, found.ours_ms))
    return Throughput(device, network, way, against, theirs, ours, found.ratio, found.others)


def _compare(ours: Open, direct: Open, *, quick: bool) -> Comparison:
    return compare(
        ours,
        direct,
        seconds=0.3 if quick else 3,
        blocks=2 if quick else 5,
        patience=0 if quick else 30,
    )


def _compiled(file: ModelFile, device: str, at_once: int) -> CompiledModel:
    shapes = file.oracle(1).shapes
    return crosschip.compile(
        file.path,
        [device],
        shapes=shapes,
        configuration=crosschip.Configuration(in_flight=at_once),
        cache=False,
    )


def _halved(file: ModelFile, at_once: int) -> CompiledModel:
    """The network with its first half on one device and its second half on another."""
    shapes = file.oracle(1).shapes
    model = crosschip.load(file.path)
    decisions = crosschip.explain(model, _PIPELINE, shapes=shapes, cache=False).decisions
    second = {decision.name: _PIPELINE[1] for decision in decisions[len(decisions) // 2 :]}
    return crosschip.compile(
        model,
        _PIPELINE,
        shapes=shapes,
        threads=1,
        configuration=crosschip.Configuration(in_flight=at_once),
        placement=crosschip.PlacementOptions(pin=second),
        cache=False,
    )


def _calling(compiled: CompiledModel, file: ModelFile, at_once: int, count: int) -> Run:
    """As many threads as runs at once, each of which calls the model."""
    return _in_threads([partial(compiled.run, file.oracle(1).inputs)] * at_once, count)


def _submitting(compiled: CompiledModel, file: ModelFile, at_once: int, count: int) -> Run:
    """One thread that keeps so many requests in flight."""
    inputs = file.oracle(1).inputs

    def run() -> None:
        ended: SimpleQueue[Request] = SimpleQueue()
        for index in range(count):
            if index >= at_once:
                ended.get().result()
            compiled.submit(inputs).add_done_callback(ended.put)
        for _ in range(at_once):
            ended.get().result()

    return run


def _in_threads(runs: list[Run], count: int) -> Run:
    """So many runs altogether, each in a thread of its own."""
    pool = ThreadPoolExecutor(len(runs))

    def repeat(run: Run) -> None:
        for _ in range(count // len(runs)):
            run()

    return lambda: list(pool.map(repeat, runs))


def opened_directly(device: str, file: ModelFile, at_once: int, count: int) -> Run:
    """The engine's own way to run a network so many times, with so many runs at once."""
    return _DIRECT[device][1](file, at_once, count)


def _openvino(file: ModelFile, at_once: int, count: int) -> Run:
    import openvino

    inputs = file.oracle(1).inputs
    core = openvino.Core()
    model = core.read_model(file.directly["openvino"])
    model.reshape({name: list(array.shape) for name, array in inputs.items()})
    hint = {"PERFORMANCE_HINT": "THROUGHPUT", "INFERENCE_PRECISION_HINT": "f32"}
    compiled = core.compile_model(model, "CPU", hint)
    queue = openvino.AsyncInferQueue(compiled, at_once)
    made: deque[list[Array]] = deque(maxlen=at_once)
    queue.set_callback(
        lambda request, _: made.append([tensor.data.copy() for tensor in request.output_tensors])
    )

    def run() -> None:
        for _ in range(count):
            queue.start_async(inputs, share_inputs=True)
        queue.wait_all()

    return run


def _onnxruntime(file: ModelFile, at_once: int, count: int) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = max(1, (os.cpu_count() or 1) // at_once)
    options.log_severity_level = 3
    feed: Mapping[str, Array] = dict(file.oracle(1).inputs)
    sessions = [
        onnxruntime.InferenceSession(
            file.directly["onnxruntime"], options, providers=["CPUExecutionProvider"]
        )
        for _ in range(at_once)
    ]
    return _in_threads([partial(session.run, None, feed) for session in sessions], count)


_WAYS: Mapping[str, Callable[[CompiledModel, ModelFile, int, int], Run]] = {
    "{} threads": _calling,
    "1 thread, {} requests in flight": _submitting,
}
_DIRECT: Mapping[str, tuple[str, Callable[[ModelFile, int, int], Run]]] = {
    "openvino": ("THROUGHPUT, AsyncInferQueue", _openvino),
    "onnxruntime": ("as many sessions", _onnxruntime),
}
