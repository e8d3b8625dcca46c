"""All examples of all operators: inference matches computation, on all devices.

The reference is held to other oracles elsewhere; here it is what inference, decompositions and
engines are held to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.conformance.decomposed import CoreDevice

from crosschip.accuracy.epsilon import epsilon
from crosschip.conformance.latitude import latitude
from crosschip.devices.reference import ReferenceDevice, ReferenceProgram
from crosschip.hal import Device, Options
from crosschip.hal.conditions import InputGuard, OutOfRange
from crosschip.ir import Array, DeviceError, ElementType, InputError, UnsupportedError
from crosschip.ir.dimension import is_unknown, substitute
from crosschip.ir.types import FLOATS
from crosschip.ops import operators
from crosschip.ops.definition.examples import Example, arrays_for, examples_of, model_of, samples
from crosschip.passes import Specialize
from crosschip.runtime.discovery import open_device
from crosschip.runtime.guard.devices import GuardedDevice
from crosschip.runtime.placement.placement import place
from crosschip.runtime.placement.queries import device_query

CASES = {
    f"{name}-{index}": (operator, arguments)
    for name, operator in operators().items()
    for index, arguments in enumerate(examples_of(operator))
}

FIRST = 1
"""How many examples of each operator are run on other sizes, besides the nightly lane."""


def daily_or_nightly(name: str) -> Any:
    """A case by name; those after the first examples run in the nightly lane."""
    is_first = int(name.rpartition("-")[2]) < FIRST
    return name if is_first else pytest.param(name, marks=pytest.mark.nightly)


# Of the largest element; the engines' own approximations of functions are within it.
TOLERANCE = {"float64": 1e-5, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}


@pytest.fixture(scope="module", params=["core", "onnxruntime", "openvino"])
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    name: str = request.param
    with CoreDevice() if name == "core" else open_device(name).device as opened:
        yield opened


def test_operators_say_that_their_sizes_depend_on_data() -> None:
    """They do where no example's are known; others have examples with parameters that are known."""
    for operator in operators().values():
        made = [model_of(operator, example).operations[0] for example in examples_of(operator)]
        known = [all(o.type.static_shape is not None for o in each.outputs) for each in made]
        assert operator.data_dependent != any(known), operator.type


@pytest.mark.parametrize("name", CASES)
def test_what_is_inferred_is_what_is_computed(name: str) -> None:
    operator, arguments = CASES[name]
    arrays = arrays_for(arguments)
    model = model_of(operator, arguments)
    results = ReferenceProgram(model).run([arrays[name] for name in model.inputs])
    for operand, result in zip(model.outputs.values(), results, strict=True):
        assert result.dtype == operand.type.element_type.dtype
        assert operand.type.static_shape in (None, result.shape)
    bound = sizes_of(arguments, arrays)
    named = model_of(operator, arguments, named=True)
    for operand, result in zip(named.outputs.values(), results, strict=True):
        if operand.type.shape is not None:
            assert len(operand.type.shape) == result.ndim
            for size, actual in zip(operand.type.shape, result.shape, strict=True):
                assert is_unknown(size) or substitute(size, bound) == actual


@pytest.mark.slow
@pytest.mark.parametrize("name", [daily_or_nightly(name) for name in CASES])
@given(data=st.data())
@settings(max_examples=4, suppress_health_check=list(HealthCheck), derandomize=True)
def test_what_is_inferred_for_other_sizes_is_computed(name: str, data: st.DataObject) -> None:
    operator, arguments = CASES[name]
    arrays = {
        input_name: resized(array, arguments, input_name, data)
        for input_name, array in arrays_for(arguments).items()
    }
    shapes = {input_name: array.shape for input_name, array in arrays.items()}
    named = model_of(operator, arguments, named=True)
    try:
        model = Specialize(shapes)(named)
    except InputError:
        assume(False)
    try:
        results = ReferenceProgram(model).run([arrays[name] for name in model.inputs])
    except DeviceError:
        # What is given, such as an index, may not fit other sizes; that shows only in a run.
        assert any(sample.value is not None for _, sample in samples(arguments))
        return
    bound = sizes_of(arguments, arrays)
    for fixed, open_, result in zip(
        model.outputs.values(), named.outputs.values(), results, strict=True
    ):
        assert fixed.type.static_shape in (None, result.shape)
        for size, actual in zip(open_.type.shape or result.shape, result.shape, strict=True):
            assert isinstance(size, int) or is_unknown(size) or substitute(size, bound) == actual


@pytest.mark.parametrize("name", CASES)
def test_devices_compute_what_the_reference_does(name: str, device: Device) -> None:
    operator, arguments = CASES[name]
    model = model_of(operator, arguments)
    ask = device_query(GuardedDevice(device, device.name), Options())
    try:
        placement = place(model, {device.name: ask})
    except UnsupportedError:
        assert ask(model).answers[0].reason.startswith(operator.type)
        assert device.name != "core", f"{operator.type} does not decompose into the core"
        return
    inputs = list(arrays_for(arguments).values())
    try:
        InputGuard(model, placement.conditions).check(inputs)
    except OutOfRange:  # the runtime runs it elsewhere
        return
    expected = ReferenceDevice().compile(model, Options()).run(inputs)
    spacings = latitude(model, inputs, expected).spacings
    program = device.compile(placement.model, Options(threads=1))
    for output, actual, wanted in zip(
        model.outputs.values(), program.run(inputs), expected, strict=True
    ):
        if output.type.quantization is not None:
            assert np.abs(actual.astype(np.int64) - wanted.astype(np.int64)).max(initial=0) <= 1
        else:
            assert_close(actual, wanted, spacings)
    program.close()


def resized(array: Array, arguments: Example, name: str, data: st.DataObject) -> Array:
    """Return a random input with other sizes on some axes."""
    sample = dict(samples(arguments))[name]
    if sample.value is not None:
        return array
    sizes = tuple(
        data.draw(st.sampled_from([size, size, size, 0, 1, size + 1]), label=name)
        for size in array.shape
    )
    return np.resize(array, sizes).astype(array.dtype)


def sizes_of(arguments: Example, arrays: Mapping[str, Array]) -> dict[str, int]:
    """Return the values of named sizes in an example's model, for these arrays."""
    return {
        f"{name}_{axis}": size
        for name, sample in samples(arguments)
        if sample.value is None
        for axis, size in enumerate(arrays[name].shape)
    }


def assert_close(actual: Array, expected: Array, spacings: float = 0.0) -> None:
    """Assert equal types and shapes; close reals and equal other values.

    Reals may always differ by so many spacings of float32 at 1.
    """
    assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
    tolerance = TOLERANCE.get(expected.dtype.name, 0.0)
    if expected.dtype.kind not in "biu":
        actual, expected = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.abs(expected[np.isfinite(expected)])
    largest = float(finite.max()) if finite.size else 0.0
    least = spacings * epsilon(ElementType.FLOAT32)
    atol = max(tolerance * largest, least)
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=atol)


def test_the_tolerances_are_those_of_all_floats() -> None:
    assert set(TOLERANCE) == {element_type.value for element_type in FLOATS}
