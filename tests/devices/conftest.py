"""Fixtures of the tests of engine devices: devices and one-line checks of operators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import entry_points

import numpy as np
import pytest
from tests.limits import is_declined_for_limit

import crosschip
from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Device, Options, Sizing
from crosschip.hal.conditions import InputGuard
from crosschip.ir import Array, Builder, ElementType, Model, Operand, TensorType, symbol
from crosschip.lowering.narrowing import conditions_of, narrowing

Build = Callable[..., Operand | tuple[Operand, ...]]
Typing = Callable[[int, Array], TensorType]


def static(_: int, array: Array) -> TensorType:
    """Return the input's type with static dimensions."""
    return TensorType(ElementType.of(array.dtype), array.shape)


def symbolic(index: int, array: Array) -> TensorType:
    """Return the input's type with named dynamic dimensions."""
    sizes = tuple(symbol(f"size{index}_{axis}") for axis in range(array.ndim))
    return TensorType(ElementType.of(array.dtype), sizes)


def rankless(_: int, array: Array) -> TensorType:
    """Return the input's type with unknown rank."""
    return TensorType(ElementType.of(array.dtype), None)


def built(build: Build, arrays: Sequence[Array], typing: Typing = static) -> Model:
    """Build the model that a function of a builder and its inputs describes."""
    b = Builder()
    inputs = [b.input(f"input {i}", typing(i, array)) for i, array in enumerate(arrays)]
    made = build(b, *inputs)
    for index, operand in enumerate(made if isinstance(made, tuple) else (made,)):
        b.output(f"output {index}", operand)
    return b.build()


def outputs_of(device: Device, model: Model, arrays: Sequence[Array]) -> Sequence[Array]:
    """Return the outputs of a device; the runtime fixes dynamic dimensions if needed."""
    if device.capabilities().sizing is Sizing.FIXED:
        inputs = dict(zip(model.inputs, arrays, strict=True))
        with crosschip.compile(model, [device], cache=False) as compiled:
            return list(compiled.run(inputs).values())
    program = device.compile(model, Options(threads=1))
    outputs = program.run(arrays)
    program.close()
    return outputs


def assert_alike(actual: Array, expected: Array, tolerance: float = 1e-5) -> None:
    """Assert equal types and shapes, and values within a tolerance of the largest one."""
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    if expected.dtype.kind in "biu":
        np.testing.assert_array_equal(actual, expected)
        return
    actual, expected = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.abs(expected[np.isfinite(expected)])
    largest = float(finite.max()) if finite.size else 0.0
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * largest)


class Checker:
    """Comparison of a device with the reference device."""

    static = staticmethod(static)
    symbolic = staticmethod(symbolic)
    built = staticmethod(built)
    outputs_of = staticmethod(outputs_of)

    def __init__(self, device: Device) -> None:
        self.device = device

    def __call__(
        self,
        build: Build,
        *inputs: tuple[int, ...] | Array,
        tolerance: float = 1e-5,
        symbolic_too: bool = True,
        rankless_too: bool = True,
    ) -> None:
        """Build a model of inputs (arrays, or shapes of random ones), run it, and compare.

        Args:
            build: describes the model.
            inputs: what goes in.
            tolerance: of the largest absolute output.
            symbolic_too: whether the device also takes the model with no size known.
            rankless_too: whether it also takes the model with no rank known (OpenVINO takes none).
        """
        random = np.random.default_rng(1)
        arrays = [
            random.normal(size=given).astype(np.float32) if isinstance(given, tuple) else given
            for given in inputs
        ]
        model = built(build, arrays)
        expected = outputs_of(ReferenceDevice(), model, arrays)
        self.compare(model, arrays, expected, tolerance)
        if symbolic_too:
            self.compare(built(build, arrays, symbolic), arrays, expected, tolerance)
        if rankless_too and self.device.name == "openvino":
            self.declines(build, *arrays, typing=rankless, why="rank must be known")
        elif rankless_too:
            self.compare(built(build, arrays, rankless), arrays, expected, tolerance)

    def typed(self, build: Build, *arrays: Array, typing: Typing, tolerance: float = 1e-5) -> None:
        """Check as a call does, with the given input types."""
        model = built(build, arrays, typing)
        self.compare(model, arrays, outputs_of(ReferenceDevice(), model, arrays), tolerance)

    def compare(
        self, model: Model, arrays: Sequence[Array], expected: Sequence[Array], tolerance: float
    ) -> None:
        """Run a model all of which the device must support, and compare.

        OpenVINO is not given what is known to make nothing, on which some of its operations crash.
        """
        answers = narrowing(self.device, Options())(model).answers
        for operation, support in zip(model.operations, answers, strict=True):
            if is_declined_for_limit(support):
                return
            made = [output.type.shape or () for output in operation.outputs]
            if self.device.name == "openvino" and any(0 in shape for shape in made):
                assert not support
                assert "no elements" in support.reason or "constant" in support.reason
                return
            assert support, support.reason
        InputGuard(model, conditions_of(self.device, model, Options())).check(arrays)
        actual = outputs_of(self.device, model, arrays)
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            assert_alike(one, other, tolerance)

    def declines(
        self, build: Build, *inputs: tuple[int, ...] | Array, why: str, typing: Typing = static
    ) -> None:
        """Assert that the device does not support the last operation for such a reason."""
        arrays = [
            np.zeros(given, np.float32) if isinstance(given, tuple) else given for given in inputs
        ]
        support = narrowing(self.device, Options())(built(build, arrays, typing)).answers[-1]
        assert not support
        if is_declined_for_limit(support):
            return
        assert why in support.reason


@pytest.fixture(scope="session", params=["onnxruntime", "openvino"])
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    """Return each of the devices that drive an engine."""
    entry = entry_points(group="crosschip.devices")[request.param]
    with entry.load()() as made:
        yield made


@pytest.fixture(scope="session")
def check(device: Device) -> Checker:
    """Return the comparison of a device with the reference device."""
    return Checker(device)
