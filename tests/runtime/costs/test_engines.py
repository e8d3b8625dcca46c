"""Costs of a small network on real engines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial

import numpy as np
import pytest
from tests.modelling import float32, model_of

import crosschip
from crosschip.hal import Options
from crosschip.ir import Builder, Dim, Model, Operand, symbol
from crosschip.ops.standard.activation import Relu
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.pooling import MaxPool2D
from crosschip.passes import simplify
from crosschip.runtime.cache.store import Memory
from crosschip.runtime.compile.devices import open_devices
from crosschip.runtime.compile.segments import Compilation
from crosschip.runtime.costs.table import CostModel
from crosschip.runtime.device_timing import measure
from crosschip.runtime.inputs import random_inputs
from crosschip.runtime.placement.placement import place
from crosschip.runtime.shapes.shape_search import Shapes

pytestmark = pytest.mark.slow


def squeezenet(size: Dim) -> Model:
    """A network of two fire modules: a narrow convolution, two wide ones, and their union."""

    def convolution(b: Builder, x: Operand, channels: int, filters: int, kernel: int) -> Operand:
        weights = np.full((filters, channels, kernel, kernel), 0.01, np.float32)
        return b.add(Relu, b.add(Conv2D, x, b.constant(weights), pads=(kernel // 2,) * 4))

    def make(b: Builder, x: Operand) -> Operand:
        x = convolution(b, x, 3, 64, 3)
        for index in range(2):
            narrow = convolution(b, x, 64, 16, 1)
            wide = [convolution(b, narrow, 16, 32, kernel) for kernel in (1, 3)]
            x = b.add(Concat, wide, 1)
            if index == 0:
                x = b.add(MaxPool2D, x, kernel_shape=(2, 2), strides=(2, 2))
        return x

    return simplify(model_of(make, float32(1, 3, size, size)))


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def measured(
    model: Model, engines: Sequence[str], shapes: Shapes, stack: ExitStack, store: Memory
) -> CostModel:
    """The measured costs of a model on engines."""
    inputs = random_inputs(model, shapes)
    compiled = {
        name: stack.enter_context(crosschip.compile(model, [name], cache=False)) for name in engines
    }
    whole = measure({name: each.run for name, each in compiled.items()}, inputs)
    compilation = Compilation(open_devices(list(engines), {}, {}, stack, isolate=False), Options())
    answers = place(model, compilation.queries(), ask_all=True).assignment.answers
    costs = CostModel(
        model,
        compilation,
        answers,
        store,
        whole_seconds={name: (trial.milliseconds or 0) / 1e3 for name, trial in whole.items()},
        whole_runs={name: partial(each.run, inputs) for name, each in compiled.items()},
        tuning_seconds=30.0,
        shapes=shapes,
    )
    costs.measure()
    return costs


@pytest.mark.parametrize(
    ("engines", "size"),
    [(("onnxruntime", "openvino"), symbol("N")), (("onnxruntime", "xla"), 64)],
    ids=["open", "asynchronous"],
)
def test_blocks_are_measured_on_engines(
    engines: tuple[str, str], size: Dim, stack: ExitStack
) -> None:
    for engine in engines:
        pytest.importorskip({"xla": "jax"}.get(engine, engine))
    model, shapes, store = squeezenet(size), {"x0": (1, 3, 64, 64)}, Memory()
    costs = measured(model, engines, shapes, stack, store)
    assert len(costs.blocks) > 3
    for index in range(len(costs.blocks)):
        for name in engines:
            block = costs.costs(index, name)
            assert block is not None
            assert not block.reason
            assert 0 < block.seconds < 1
    problem = costs.problem()
    whole = [problem.predicted_seconds([index] * problem.blocks) for index in (0, 1)]
    assert all(1e-5 < seconds < 1 for seconds in whole)
    assert len(problem.segments([index % 2 for index in range(problem.blocks)])) > 1

    later = measured(model, engines, shapes, stack, store)
    assert [block.signature for block in later.blocks] == [b.signature for b in costs.blocks]
    for index in range(len(costs.blocks)):
        block = later.costs(index, engines[0])
        assert block is not None
        assert not block.estimated
