"""Sizes that the shapes of inputs determine are checked before a run, not in the graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.limits import is_declined_for_limit

from crosschip.devices.openvino import OpenVinoDevice
from crosschip.devices.reference import ReferenceDevice
from crosschip.hal import Options, Program
from crosschip.ir import (
    Array,
    Builder,
    DeviceError,
    ElementType,
    Model,
    Operand,
    TensorType,
    symbol,
)
from crosschip.ops.standard.arithmetic import Add, Div, Mul
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.creation import Range, ShapeOf
from crosschip.ops.standard.indexing import Gather, GatherElements, GatherND
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Expand, Reshape, Unsqueeze
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.rearranging import Tile
from crosschip.ops.standard.resizing import ResizeNearest
from crosschip.ops.standard.searching import ArgMax

NAMES = ("n", "m", "k")
TABLE = np.arange(6, dtype=np.float32).reshape(3, 2)

Sizes = Mapping[str, Operand]


def _counted(b: Builder, end: Operand, start: int = 0) -> Operand:
    return b.add(Range, np.array(start), end, np.array(1))


def _list(b: Builder, *sizes: Operand | int) -> Operand:
    parts = [b.constant(np.array(s)) if isinstance(s, int) else s for s in sizes]
    return b.add(Concat, [b.add(Reshape, part, (1,)) for part in parts], 0)


def _in_table(b: Builder, x: Operand, y: Operand, s: Sizes) -> Operand:
    places = b.add(Expand, _counted(b, s["m"]), _list(b, s["n"], s["m"]))
    return b.add(Gather, TABLE, places, 0)


def _later_in_table(b: Builder, x: Operand, y: Operand, s: Sizes) -> Operand:
    places = b.add(Add, _counted(b, s["n"], start=1), np.array(1))
    return b.add(Gather, TABLE, places, 0)


def _on_other_axis(b: Builder, x: Operand, y: Operand, s: Sizes) -> Operand:
    rows = b.add(Unsqueeze, _counted(b, s["k"]), (1,))
    columns = b.add(Mul, rows, np.array(1))
    return b.add(GatherND, x, b.add(Concat, [rows, columns], 1))


def _in_shared(b: Builder, x: Operand, y: Operand, s: Sizes) -> Operand:
    each = b.add(Div, b.add(Mul, s["n"], s["m"]), s["n"])
    return b.add(Gather, x, _counted(b, each), 1)


def _greatest(b: Builder, x: Operand, y: Operand, s: Sizes) -> Operand:
    return b.add(ArgMax, x, 1)


def _last_row(b: Builder, x: Operand, y: Operand, s: Sizes) -> Operand:
    return b.add(Gather, x, np.array(-1), 0)


def _convolved(b: Builder, x: Operand, y: Operand, s: Sizes) -> Operand:
    return b.add(Conv2D, b.add(Unsqueeze, x, (0, 1)), np.ones((1, 1, 2, 3), np.float32))


def _expanded(b: Builder, x: Operand, y: Operand, s: Sizes) -> Operand:
    return b.add(Expand, x, _list(b, s["k"], 1))


def _flattened(b: Builder, x: Operand, y: Operand, s: Sizes) -> Operand:
    count = b.add(Mul, s["k"], s["m"])
    return b.add(Reshape, x, _list(b, count), True)


def _multiplied(b: Builder, x: Operand, y: Operand, s: Sizes) -> Operand:
    return b.add(MatMul, x, y)


def _stretched(b: Builder, x: Operand, y: Operand, s: Sizes) -> Operand:
    """Broadcast rows to a number that another operand must have."""
    return b.add(MatMul, x, b.add(Add, x, y), transpose_x=True)


def _expanded_and_multiplied(b: Builder, x: Operand, y: Operand, s: Sizes) -> Operand:
    more = b.add(Expand, x, _list(b, s["k"], s["m"]))
    return b.add(MatMul, y, more, transpose_x=True)


def _repeated(b: Builder, x: Operand, y: Operand, s: Sizes) -> Operand:
    return b.add(Tile, x, _list(b, s["k"], 1))


def _resized(b: Builder, x: Operand, y: Operand, s: Sizes) -> Operand:
    image = b.add(Unsqueeze, x, (0, 1))
    return b.add(ResizeNearest, image, _list(b, s["k"], s["m"]))


Make = Callable[[Builder, Operand, Operand, Sizes], Operand]
MAKERS: list[Make] = [
    *(_in_table, _later_in_table, _on_other_axis, _in_shared, _greatest, _last_row),
    *(_convolved, _expanded, _flattened, _multiplied, _stretched, _expanded_and_multiplied),
    *(_repeated, _resized),
]


def _model(make: Make, element_type: ElementType = ElementType.FLOAT32) -> Model:
    """Return a model of inputs [n, m] and [k, m]."""
    b = Builder()
    n, m, k = map(symbol, NAMES)
    x = b.input("x", TensorType(element_type, (n, m)))
    y = b.input("y", TensorType(element_type, (k, m)))
    shapes = {"n": (x, 0), "m": (x, 1), "k": (y, 0)}
    sizes = {
        name: b.add(Gather, b.add(ShapeOf, of), np.array(axis), 0)
        for name, (of, axis) in shapes.items()
    }
    b.output("made", make(b, x, y, sizes))
    return b.build()


@pytest.fixture(scope="module")
def programs() -> Mapping[Make, tuple[Program, Program, Program]]:
    """Return OpenVINO's program, the same loaded, and the reference's, for each model."""
    device, options = OpenVinoDevice(), Options(threads=1)
    made = {}
    for make in MAKERS:
        kind = ElementType.INT32 if make is _greatest else ElementType.FLOAT32
        model = _model(make, kind)
        answers = [device.supports(operation, options) for operation in model.operations]
        if any(is_declined_for_limit(answer) for answer in answers):
            continue
        assert all(answers), make
        program = device.compile(model, options)
        saved = program.save()
        assert saved is not None
        loaded = device.load(saved, model, options)
        made[make] = program, loaded, ReferenceDevice().compile(model, Options())
    return made


@pytest.mark.parametrize("make", MAKERS)
@given(sizes=st.tuples(*[st.integers(0, 5)] * 3))
def test_sizes_that_do_not_fit_are_refused(
    programs: Mapping[Make, tuple[Program, Program, Program]],
    make: Make,
    sizes: tuple[int, int, int],
) -> None:
    n, m, k = sizes
    if make not in programs:  # declined for the limit, as the fixture asserts
        return
    *ours, reference = programs[make]
    dtype = np.int32 if make is _greatest else np.float32
    inputs: list[Array] = [
        np.arange(rows * m).reshape(rows, m).astype(dtype) % 7 for rows in (n, k)
    ]
    for program in ours:
        assert not program._requirements.rules  # type: ignore[attr-defined]
        expected, made = _outcome(reference, inputs), _outcome(program, inputs)
        if expected is None:
            # Of nothing that is made, nobody sees what it is made of.
            assert made is None or (0 in sizes and not made.size)
        elif made is None:
            assert 0 in sizes  # sums over nothing are not for OpenVINO
        else:
            np.testing.assert_array_equal(made, expected)


def _outcome(program: Program, inputs: Sequence[Array]) -> Array | None:
    """Return the output of a program; `None` if it refuses the sizes."""
    try:
        (made,) = program.run(inputs)
    except DeviceError:
        return None
    return made


@given(
    data=st.data(),
    n=st.integers(1, 3),
    m=st.integers(1, 4),
    k=st.integers(1, 4),
    axis=st.integers(0, 1),
)
def test_elements_of_open_sizes(data: st.DataObject, n: int, m: int, k: int, axis: int) -> None:
    """Indices for elements beside others of the same size need no clamping."""
    b = Builder()
    sizes = tuple(map(symbol, ("n", "m")))
    x = b.input("x", TensorType(ElementType.FLOAT32, sizes))
    picked = (symbol("k"), sizes[1]) if axis == 0 else (sizes[0], symbol("k"))
    indices = b.input("indices", TensorType(ElementType.INT64, picked))
    b.output("y", b.add(GatherElements, x, b.add(Add, indices, np.array(0)), axis))
    model = b.build()
    shape = (k, m) if axis == 0 else (n, k)
    beyond = data.draw(st.booleans())
    most = (n, m)[axis]
    places = st.integers(-most - beyond, most - 1 + beyond)
    count = shape[0] * shape[1]
    chosen = np.array(data.draw(st.lists(places, min_size=count, max_size=count))).reshape(shape)
    given = np.arange(n * m, dtype=np.float32).reshape(n, m)
    with OpenVinoDevice() as device:
        assert all(device.supports(operation, Options()) for operation in model.operations)
        program = device.compile(model, Options(threads=1))
        if chosen.min() < -most or chosen.max() >= most:
            with pytest.raises(DeviceError, match="indices: one is out of range"):
                program.run([given, chosen])
        else:
            (made,) = program.run([given, chosen])
            np.testing.assert_array_equal(made, np.take_along_axis(given, chosen, axis))


def test_nothing_that_is_repeated_has_the_shape_of_its_own_run(
    programs: Mapping[Make, tuple[Program, Program, Program]],
) -> None:
    """Quirk `repeats-of-nothing`."""
    program, *_ = programs[_repeated]
    for rows, columns, repeats in np.random.default_rng(1).integers(0, 3, (1000, 3)).tolist():
        inputs = [np.ones((count, columns), np.float32) for count in (rows, repeats)]
        (made,) = program.run(inputs)
        assert made.shape == (rows * repeats, columns)
