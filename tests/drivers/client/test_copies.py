"""Tensors go to a driver and come back without copies beyond the first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.drivers.peer import Peer
from tests.drivers.serving import Serving, serving
from tests.modelling import float32, model_of

from crosschip.drivers.client.device import RemoteDevice
from crosschip.drivers.client.program import RemoteProgram
from crosschip.hal import Options
from crosschip.ir import ElementType, symbol
from crosschip.ops.standard.activation import Relu

LARGE = (64, 1024)
"""The sizes of a tensor that the service does not copy: more than 64 KiB."""


@pytest.fixture(scope="module", params=["reference", "onnxruntime", "openvino"])
def service(request: pytest.FixtureRequest) -> Iterator[Serving]:
    with serving(request.param, "--workers=1") as service:
        yield service


def test_a_large_tensor_is_copied_once_on_its_way_there(service: Serving) -> None:
    with opened(service) as device:
        program = compiled(device, LARGE)
        x = np.random.default_rng(0).standard_normal(LARGE, np.float32)
        before = copied(service)
        for runs in (1, 2, 3):
            (made,) = program.run([x])
            np.testing.assert_array_equal(made, np.maximum(x, 0))
            assert program.copied == runs, "the input, and no output"
        engine_writes_in_place = service_copies(service, before) == 0
        assert engine_writes_in_place or service.device == "reference"
        program.close()


def test_what_lies_in_shared_memory_is_not_copied(service: Serving) -> None:
    with opened(service) as device:
        program = compiled(device, LARGE)
        x, y = (device.allocate(ElementType.FLOAT32, LARGE).array() for _ in range(2))
        x[:] = -1.0
        x[0] = 3.0
        (made,) = program.run_into([x], [y])
        assert made is y
        assert y[0].min() == 3.0
        assert not y[1:].any()
        assert program.copied == 0
        (again,) = program.run([y])
        assert program.copied == 0, "outputs may be inputs as they are"
        np.testing.assert_array_equal(again, y)
        program.close()


def test_outputs_of_open_sizes_are_not_copied_here(service: Serving) -> None:
    with opened(service) as device:
        program = compiled(device, (symbol("N"), 8))
        for rows in (1, 5, 4000, 3):
            x = np.full((rows, 8), 2, np.float32)
            (made,) = program.run([x])
            np.testing.assert_array_equal(made, x)
        assert program.copied == 4, "the inputs"
        program.close()


def opened(service: Serving) -> RemoteDevice:
    return RemoteDevice(service.device, f"unix:{service.path}")


def compiled(device: RemoteDevice, shape: tuple[object, ...]) -> RemoteProgram:
    model = model_of(lambda b, x: b.add(Relu, x), float32(*shape))  # type: ignore[arg-type]
    program = device.compile(model, Options())
    assert isinstance(program, RemoteProgram)
    return program


def copied(service: Serving) -> int:
    """How many outputs the service has copied."""
    with Peer(Path(service.path)) as watcher:
        watcher.greet(watches=True)
        return watcher.figures().copied


def service_copies(service: Serving, before: int) -> int:
    return copied(service) - before
