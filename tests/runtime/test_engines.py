"""The runtime over the engines in the box: same results, and a cache that many may fill."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from tests.modelling import at_once, close, float32, model_of, outputs_of
from tests.random_models import Example, examples

import crosschip
from crosschip.hal import Device
from crosschip.ir import Builder, Operand, symbol
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.matrix import MatMul
from crosschip.runtime.cache.folder import Cache
from crosschip.runtime.discovery import open_device

ENGINES = ("onnxruntime", "openvino")


@pytest.fixture(scope="module", params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Iterator[Device]:
    """Each of the engines, open."""
    with open_device(request.param) as device:
        yield device.device


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(example=examples().filter(lambda example: example.positive))
def test_random_models_give_the_results_of_the_reference(engine: Device, example: Example) -> None:
    expected = outputs_of(example.model, example.inputs)
    with crosschip.compile(example.model, [engine, "reference"], cache=False) as model:
        for _ in range(2):
            results = model.run(example.inputs)
            for name, array in results.items():
                close(array, expected[name])
        given = list(example.inputs.values())
        made = list(results.values())
        for i, array in enumerate(made):
            assert array.flags.c_contiguous
            assert not any(np.shares_memory(array, other) for other in [*given, *made[:i]])


def test_an_axis_that_a_bias_adds_is_there(engine: Device) -> None:
    """OpenVINO 2026.4 by itself makes [N, 3] of [1, N, 3] where N is open."""

    def make(b: Builder, x: Operand) -> Operand:
        product = b.add(MatMul, x, np.full((2, 3), 2, np.float32))
        return b.add(Add, product, np.ones((1, 1, 3), np.float32))

    with crosschip.compile(model_of(make, float32(symbol("N"), 2)), [engine], cache=False) as model:
        result = model.run({"x0": np.ones((1, 2), np.float32)})["y0"]
        assert result.tolist() == [[[5, 5, 5]]]


COMPILING = """
import sys
import numpy as np
import crosschip
from crosschip.ir import Builder, ElementType, TensorType
from crosschip.ops.standard.convolution import Conv2D

b = Builder()
x = b.input("x", TensorType(ElementType.FLOAT32, (1, 1, 4, 4)))
b.output("y", b.add(Conv2D, x, np.full((1, 1, 3, 3), 2, np.float32), name="c"))
sys.stdin.readline()
with crosschip.compile(b.build(), sys.argv[1], cache=sys.argv[2]) as model:
    print(model.report.cache, model(np.ones((1, 1, 4, 4), np.float32)).ravel().tolist())
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ENGINES)
def test_eight_processes_fill_one_folder_at_once(name: str, tmp_path: Path) -> None:
    for out in at_once(COMPILING, name, str(tmp_path)):
        assert out.removeprefix("miss ").removeprefix("hit ") == "[18.0, 18.0, 18.0, 18.0]\n"
    assert [listed.problem for listed in Cache(tmp_path).listing()] == [""]
    assert len(list(tmp_path.glob("*.chip"))) == 1
    (out,) = at_once(COMPILING, name, str(tmp_path), count=1)
    assert out == "hit [18.0, 18.0, 18.0, 18.0]\n"
