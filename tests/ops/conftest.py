"""One-line comparisons of operators' references with other implementations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.ops.oracle import PyTorchMissing, Recording

from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options
from crosschip.ir import Array, Builder, ElementType, Model, Operand, TensorType, symbol
from crosschip.ir.dimension import is_unknown, substitute
from crosschip.ir.types import NARROW_TYPES

Build = Callable[..., Operand | tuple[Operand, ...]]


class Checker:
    """Compares an operator's reference and its inference with an oracle.

    Args:
        name: of the test.
        recording: what the oracle computed before.
    """

    def __init__(self, name: str, recording: Recording) -> None:
        self._name = name
        self._recording = recording
        self._count = 0

    def __call__(
        self,
        build: Build,
        oracle: Callable[..., Any],
        *inputs: tuple[int, ...] | Array,
        tolerance: float = 1e-5,
        counted: bool = False,
    ) -> None:
        """Build a model of inputs (arrays, or shapes of random ones), run it, and compare.

        The types inferred from known sizes must be those of the results, and what is inferred from
        named sizes must come to the same.

        Args:
            build: describes the model.
            oracle: the same on arrays, or on PyTorch's tensors if it is a function of PyTorch's.
            inputs: what goes in.
            tolerance: of the largest absolute output; 0 for the very same bits.
            counted: whether sizes may depend on the elements that go in.
        """
        random = np.random.default_rng(1)
        arrays = [
            random.normal(size=given).astype(np.float32) if isinstance(given, tuple) else given
            for given in inputs
        ]
        expected = self.expected(oracle, arrays)
        sizes = {
            f"size{index}_{axis}": size
            for index, array in enumerate(arrays)
            for axis, size in enumerate(array.shape)
        }
        for named in (False, True):
            model = self.built(build, arrays, named=named)
            program = ReferenceDevice().compile(model, Options())
            actual = program.run(arrays)
            assert len(actual) == len(expected)
            for one, other, operand in zip(actual, expected, model.outputs.values(), strict=True):
                self.assert_alike(one, other, tolerance)
                assert operand.type.element_type.dtype == one.dtype
                inferred = operand.type.shape
                assert inferred is not None
                for inferred_size, size in zip(inferred, one.shape, strict=True):
                    if (named or counted) and is_unknown(inferred_size):
                        continue
                    assert substitute(inferred_size, sizes) == size

    def built(self, build: Build, arrays: list[Array], *, named: bool) -> Model:
        """Return the model, with static or named sizes."""
        b = Builder()
        inputs = []
        for index, array in enumerate(arrays):
            shape: tuple[Any, ...] = array.shape
            if named:
                shape = tuple(symbol(f"size{index}_{axis}") for axis in range(array.ndim))
            inputs.append(b.input(str(index), TensorType(ElementType.of(array.dtype), shape)))
        made = build(b, *inputs)
        for index, operand in enumerate(made if isinstance(made, tuple) else (made,)):
            b.output(str(index), operand)
        return b.build()

    def expected(self, oracle: Callable[..., Any], arrays: list[Array]) -> list[Array]:
        """Return the oracle's outputs as arrays."""
        name = f"{self._name}#{self._count}"
        self._count += 1
        try:
            result = oracle(*arrays)
        except PyTorchMissing:
            try:
                return self._recording.find(name)
            except KeyError:
                pytest.fail(f"PyTorch has not been asked about {name}; see tests/ops/oracle.py")
        results = result if isinstance(result, tuple | list) else [result]
        expected = [np.asarray(one) for one in results]
        self._recording.add(name, expected)
        return expected

    def assert_alike(self, actual: Array, expected: Array, tolerance: float) -> None:
        """Assert equal types and shapes, and close values."""
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        if ElementType.of(expected.dtype) in NARROW_TYPES:
            actual, expected = actual.astype(np.float32), expected.astype(np.float32)
        if tolerance == 0 or expected.dtype.kind in "biu":
            np.testing.assert_array_equal(actual, expected)
            return
        finite = np.abs(expected[np.isfinite(expected)])
        largest = float(finite.max()) if finite.size else 0.0
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * largest)


@pytest.fixture(scope="module")
def recording(request: pytest.FixtureRequest) -> Iterator[Recording]:
    """Provide PyTorch's outputs for a test module; record them at its end on request."""
    recording = Recording(request.path.stem)
    yield recording
    asks_pytorch = {"torch", "functional", "of_torch"} & vars(request.module).keys()
    if request.config.getoption("--record-oracle") and asks_pytorch:
        recording.write()


@pytest.fixture
def check(request: pytest.FixtureRequest, recording: Recording) -> Checker:
    """Provide the comparison with an oracle."""
    return Checker(request.node.name, recording)
