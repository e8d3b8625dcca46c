"""Padding to larger sizes: never wrong, and there where operators declare that rows are apart."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.modelling import float32, model_of, outputs_of
from tests.random_models import Example, examples
from tests.runtime.test_shapes import Static, image, sequence

import crosschip
from crosschip.devices.reference import ReferenceProgram
from crosschip.ir import (
    Array,
    Builder,
    DeviceError,
    ElementType,
    InputError,
    Model,
    ModelError,
    Operand,
    TensorType,
    symbol,
)
from crosschip.ops import examples_of, operators
from crosschip.ops.definition.examples import Sample, arrays_for
from crosschip.ops.definition.examples import model_of as model_of_example
from crosschip.ops.standard.activation import Relu, Softmax
from crosschip.ops.standard.arithmetic import Add, Div, Mul
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape, Transpose
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.normalization import LayerNormalization
from crosschip.ops.standard.reduction import ReduceMean
from crosschip.ops.standard.slicing import Slice
from crosschip.runtime.shapes.padding import Padding, rows_of

Opened = tuple[Mapping[str, Any], dict[str, Array]]


def opened(arguments: Mapping[str, Any]) -> Iterator[Opened]:
    """An example with a size N on an axis of an input, or of two inputs that are as long there."""
    arrays = arrays_for(arguments)
    places = [
        (name, axis, size)
        for name, array in arrays.items()
        for axis, size in enumerate(array.shape)
        if size > 0
    ]
    pairs = [
        (one, other)
        for one, other in itertools.combinations(places, 2)
        if one[0] != other[0] and one[2] == other[2]
    ]
    for chosen in (*((place,) for place in places), *pairs):
        changed = {name: (axis, size) for name, axis, size in chosen}
        yield _with_size(arguments, changed), arrays


def _with_size(arguments: Mapping[str, Any], changed: Mapping[str, tuple[int, int]]) -> Any:
    """The arguments with N on an axis of some of them."""

    def of(name: str, argument: Any) -> Any:
        if isinstance(argument, list):
            return [of(f"{name}.{index}", part) for index, part in enumerate(argument)]
        if not isinstance(argument, Sample) or name not in changed:
            return argument
        axis, _ = changed[name]
        shape = list(argument.type.shape or ())
        shape[axis] = symbol("N")
        return replace(argument, type=replace(argument.type, shape=tuple(shape)))

    return {name: of(name, argument) for name, argument in arguments.items()}


def declared(name: str) -> Iterator[tuple[Model, dict[str, Array]]]:
    """The models of an operator's examples that may be padded, and inputs for them."""
    for arguments in examples_of(operators()[name]):
        for changed, arrays in opened(arguments):
            try:
                model = model_of_example(operators()[name], changed)
            except (ModelError, ValueError):
                continue  # the definition needs to know the size
            if rows_of(model, "N") is not None:
                yield model, arrays


@pytest.mark.parametrize("name", sorted(operators()))
def test_what_operators_declare_is_true(name: str) -> None:
    """Each example with each axis open: more rows change nothing in those that there were."""
    for model, arrays in declared(name):
        inputs = [arrays[each] for each in model.inputs]
        expected = ReferenceProgram(model).run(inputs)
        shapes = tuple(array.shape for array in inputs)
        for more in (1, 3):
            padding = Padding(model, {"N": [_size(model, shapes) + more]})
            wider = padding.shapes(shapes)
            assert wider != shapes
            made = ReferenceProgram(model).run(padding.pad(inputs, wider))
            for one, other in zip(padding.crop(made, shapes), expected, strict=True):
                assert (one.dtype, one.shape) == (other.dtype, other.shape)
                np.testing.assert_allclose(
                    one.astype(np.float64), other.astype(np.float64), rtol=1e-5, atol=1e-6
                )


def _size(model: Model, shapes: tuple[tuple[int, ...], ...]) -> int:
    return next(
        shape[axis]
        for operand, shape in zip(model.inputs.values(), shapes, strict=True)
        for axis, size in enumerate(operand.type.shape or ())
        if size == symbol("N")
    )


ROWWISE = {"ADD", "BATCH_NORMALIZATION", "CAST", "CLIP", "CONCAT", "CONV_2D", "FULLY_CONNECTED"}
ROWWISE |= {"GATHER", "LAYER_NORMALIZATION", "MAT_MUL", "MAX_POOL_2D", "REDUCE_SUM", "RELU"}
ROWWISE |= {"RESHAPE", "RESIZE_LINEAR", "SOFTMAX", "SPLIT", "TRANSPOSE", "WHERE"}


def test_the_operators_of_networks_declare_their_rows() -> None:
    assert {name for name in ROWWISE if next(declared(name), None)} == ROWWISE


@given(examples(), st.integers(0, 3), st.integers(0, 2))
def test_padded_is_as_unpadded(example: Example, first: int, second: int) -> None:
    """Random models, whose sizes are padded where that may be, on a device of known sizes."""
    sizes: dict[str, int] = {}
    for name, operand in example.model.inputs.items():
        for size, actual in zip(operand.type.shape or (), example.inputs[name].shape, strict=True):
            if not isinstance(size, int):
                (own,) = size.names
                sizes[own] = actual
    buckets = {n: [max(1, size + first), size + first + second + 1] for n, size in sizes.items()}
    expected = outputs_of(example.model, example.inputs)
    device = Static(name="static")
    with crosschip.compile(
        example.model,
        [device, "reference"],
        shapes=crosschip.ShapeOptions(buckets=buckets),
        cache=False,
    ) as compiled:
        found = compiled.run(example.inputs)
    for name, value in expected.items():
        assert found[name].shape == value.shape
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-6)


def padded(model: Model, *names: str) -> bool:
    """Tell whether sizes of these names may be padded."""
    return set(Padding(model, {name: [8] for name in names}).buckets) == set(names)


def test_batches_of_images_and_sequences_may_be_padded() -> None:
    images = float32(symbol("N"), 3, symbol("H"), symbol("W"))
    assert padded(model_of(image, images), "N")
    assert not padded(model_of(image, images), "H"), "neighbours count"
    lengths = float32(symbol("batch"), symbol("length"), 8)
    assert padded(model_of(sequence, lengths), "batch")
    assert not padded(model_of(sequence, lengths), "length"), "each attends to all"


MIXED = {
    "a mean over rows": lambda b, x: b.add(ReduceMean, x, (0,)),
    "a mean over everything": lambda b, x: b.add(ReduceMean, x),
    "shares of a sum over rows": lambda b, x: b.add(Softmax, x, 0),
    "rows after rows": lambda b, x: b.add(Concat, [x, x], 0),
    "the last row": lambda b, x: b.add(Slice, x, (0,), (-1,), (2**31 - 1,)),
    "rows by rows": lambda b, x: b.add(MatMul, x, x, transpose_y=True),
    "sums of products over rows": lambda b, x: b.add(MatMul, x, x, transpose_x=True),
    "rows and what is one": lambda b, x: b.add(Reshape, x, (-1,)),
    "as many as another's rows": lambda b, x: b.add(Add, x, b.add(Transpose, x, (1, 0))),
    "three rows to be added": lambda b, x: b.add(Add, x, b.constant(np.ones((3, 4), np.float32))),
    "how many there are": lambda b, x: b.add(ShapeOf, x),
    "rows by how many there are": lambda b, x: b.add(
        Div, x, b.add(Cast, b.add(ShapeOf, x), ElementType.FLOAT32)
    ),
    "normalized over all": lambda b, x: b.add(LayerNormalization, x, begin_norm_axis=0),
}


@pytest.mark.parametrize("kind", MIXED)
def test_rows_that_are_mixed_are_not_padded(kind: str) -> None:
    try:
        model = model_of(MIXED[kind], float32(symbol("N"), 4))
    except ModelError:
        return
    assert not padded(model, "N")


def test_a_size_that_is_more_than_an_axis_is_not_padded() -> None:
    twice = float32(symbol("N"), symbol("N"))
    assert not padded(model_of(lambda b, x: b.add(Relu, x), twice), "N")
    double = float32(symbol("N") * 2, 3)
    assert not padded(model_of(lambda b, x: b.add(Relu, x), double), "N")
    assert not padded(model_of(lambda b, x: b.add(Relu, x), float32(symbol("N"))), "M")


def test_what_is_added_breaks_no_rule() -> None:
    """Copies of the last row: zeros would be indices into a table that has none of that index."""

    def build(b: Builder, rows: Operand) -> Operand:
        table = b.constant(np.arange(12, dtype=np.float32).reshape(3, 4))
        return b.add(Mul, b.add(Gather, table, rows), 2.0)

    b = Builder()
    rows = b.input("rows", TensorType(ElementType.INT64, (symbol("N"),)))
    b.output("y", build(b, rows))
    device = Static(name="static")
    with crosschip.compile(
        b.build(), [device], shapes=crosschip.ShapeOptions(buckets={"N": [4]}), cache=False
    ) as compiled:
        assert compiled(np.array([2, 1]))[:, 0].tolist() == [16, 8]
        assert device.shapes == [((4,),)]
        with pytest.raises(DeviceError, match="indices"):
            compiled(np.array([3, 1]))
        assert compiled(np.array([], np.int64)).shape == (0, 4)
        assert compiled(np.arange(3)[[0, 1, 2, 0, 1]])[:, 0].tolist() == [0, 8, 16, 0, 8]
    assert device.shapes == [((4,),), ((0,),), ((5,),)]


def test_few_programs_do_for_many_batches() -> None:
    model = model_of(image, float32(symbol("N"), 3, 6, 5))
    device = Static(name="static")
    buckets = {"N": [8, 1, 2, 4, 16]}
    with crosschip.compile(
        model, [device], shapes=crosschip.ShapeOptions(buckets=buckets), cache=False
    ) as compiled:
        for size in (*range(1, 17), 3, 9):
            array = np.random.default_rng(size).normal(size=(size, 3, 6, 5)).astype(np.float32)
            np.testing.assert_allclose(
                compiled(array), outputs_of(model, {"x0": array})["y0"], rtol=1e-5, atol=1e-6
            )
        compiled.prepare({"x0": (7, 3, 6, 5)})
        (found,) = compiled.statistics().segments
    assert {shapes[0][0] for shapes in device.shapes} == {1, 2, 4, 8, 16}
    assert (found.compiled, found.padded, found.evicted) == (5, 18 - 5, 0)


@pytest.mark.parametrize("device", ["xla"])
def test_a_device_with_memory_of_its_own_is_padded_too(device: str) -> None:
    model = model_of(lambda b, x: b.add(Relu, x), float32(symbol("N"), 4))
    with crosschip.compile(
        model, device, shapes=crosschip.ShapeOptions(buckets={"N": [4]}), cache=False
    ) as compiled:
        kept = compiled.run({"x0": np.full((3, 4), 2, np.float32)}, keep=["y0"])["y0"]
        for given in (np.full((3, 4), 2, np.float32), kept):
            place = np.zeros((3, 4), np.float32)
            compiled.run({"x0": given}, outputs={"y0": place})
            assert place.tolist() == [[2] * 4] * 3
        assert compiled.statistics().segments[0].compiled == 1


@pytest.mark.parametrize("given", [3, {"N": 3}, {"N": []}, {"N": [0]}, {"N": "12"}, {"N": [1.5]}])
def test_buckets_that_are_none(given: Any) -> None:
    model = model_of(lambda b, x: b.add(Relu, x), float32(symbol("N")))
    with pytest.raises(InputError, match="buckets"):
        crosschip.compile(
            model, "reference", shapes=crosschip.ShapeOptions(buckets=given), cache=False
        )
