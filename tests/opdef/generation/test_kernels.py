"""Elements that generated kernels read and write: every type, strided, quantized; against NumPy."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.opdef.custom.documents import made, taken
from tests.opdef.generation.projects import SIGNALS, build, fill_in, generated, with_body

from crosschip.ir import Array, Builder, ElementType, Quantization, TensorType
from crosschip.opdef.datatypes import Datatype
from crosschip.opdef.definitions import OpDef, OpDefCollection, OpDefList
from crosschip.opdef.documents import write
from crosschip.ops.definition.operator import Operator

PLAIN = [d for d in Datatype if d.element_type is not None and not d.quantized]
FIXED = [d for d in Datatype if d.quantized and d is not Datatype.UFIXED_POINT_32]
"""crosschip has no quantized tensors of uint32."""
COPY = """
    for (crosschip_walk from = crosschip_first(x), to = crosschip_first(y); to.left;
         crosschip_next(&from), crosschip_next(&to))
        crosschip_write(&to, crosschip_read(&from));
    return CROSSCHIP_KERNEL_OK;"""


def imported(project: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(project / "src")
    return import_module(project.name)


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """Kernels that copy elements: of each type to doubles, and of doubles to each plain type."""
    double = (Datatype.FLOAT_64,)
    pairs = [(f"From_{d.name}", (d,), double) for d in (*PLAIN, *FIXED)]
    pairs += [(f"To_{d.name}", double, (d,)) for d in PLAIN]
    op_defs = [
        OpDef(
            name=name,
            inputs=(taken("x", datatypes=source),),
            outputs=(made("y", "shape(y) == shape(x)", datatypes=target),),
        )
        for name, source, target in pairs
    ]
    collection = OpDefCollection(
        package_name="Copies",
        domain="copies",
        version="1",
        definitions=OpDefList(op_defs=tuple(op_defs)),
    )
    folder = tmp_path_factory.mktemp("copies")
    document = folder / "copies.xml"
    document.write_bytes(write(collection))
    project = generated(folder, "native", document).folder
    for kernel in project.glob("native/[!_]*.c"):
        kernel.write_text(with_body(kernel.read_text("utf-8"), COPY), "utf-8")
    build(project)
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield imported(project, monkeypatch)
    for name in [name for name in sys.modules if name.partition(".")[0] == "copies"]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def signals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    """Yield the kernels of the signals, made by the other compiler that there is."""
    project = generated(tmp_path_factory.mktemp("signals"), "native", SIGNALS).folder
    fill_in(project)
    pytest.importorskip("ziglang")
    build(project, compiler=f"{sys.executable} -m ziglang cc")
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield imported(project, monkeypatch)
    for name in [name for name in sys.modules if name.partition(".")[0] == "signals"]:
        del sys.modules[name]


def computed(
    operator: type[Operator],
    *arrays: Array,
    quantization: Quantization | None = None,
    output: Quantization | None = None,
    **named: Any,
) -> Array:
    """Return the output that a kernel makes of arrays as they lie in memory."""
    b = Builder("use")
    inputs = [
        b.input(f"x{i}", TensorType(ElementType.of(array.dtype), array.shape, quantization))
        for i, array in enumerate(arrays)
    ]
    b.add(operator, *inputs, quantization=output, **named)
    (operation,) = b.operations
    assert isinstance(operation, Operator)
    filled = dict(zip(inputs, arrays, strict=True))
    values = [None if o is None else filled.get(o, o.value) for o in operation.inputs]
    (result,) = operation.kernel()(values)
    return result


def every_bit(datatype: Datatype) -> Array:
    """Return every element of a type of up to 16 bits, and many of a wider one."""
    assert datatype.element_type is not None
    dtype = datatype.element_type.dtype
    if datatype is Datatype.BOOL_8:
        return np.array([False, True])
    if datatype.element_type in (ElementType.INT4, ElementType.UINT4):
        low = -8 if datatype.element_type is ElementType.INT4 else 0
        return np.arange(low, low + 16).astype(dtype)
    if dtype.itemsize <= 2:
        return np.arange(2 ** (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}").view(dtype)
    generator = np.random.default_rng(0)
    return generator.integers(0, 256, 4000 * dtype.itemsize, np.uint8).view(dtype)


@pytest.mark.parametrize("datatype", PLAIN, ids=lambda d: d.name)
def test_every_type_is_read(datatype: Datatype, copies: ModuleType) -> None:
    x = every_bit(datatype)
    with np.errstate(all="ignore"):
        expected = x.astype(np.float64)
    found = computed(getattr(copies, f"From_{datatype.name}"), x)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("datatype", FIXED, ids=lambda d: d.name)
def test_every_quantized_type_is_read(datatype: Datatype, copies: ModuleType) -> None:
    x = every_bit(datatype)
    quantization = Quantization((0.1,), (3,))
    found = computed(getattr(copies, f"From_{datatype.name}"), x, quantization=quantization)
    expected = (x.astype(np.float64) - 3) * np.float64(np.float32(0.1))
    np.testing.assert_array_equal(found, expected)


AWKWARD = [
    0.0,
    -0.0,
    0.5,
    1.5,
    2.5,
    -0.5,
    -1.5,
    127.5,
    255.5,
    -129,
    1e10,
    -1e10,
    2.0**63,
    -(2.0**63),
]
AWKWARD += [2.0**64, 1e300, -1e300, np.inf, -np.inf, 65519.9, 65520, 2.0**-24, 2.0**-25, 2.0**-14]
AWKWARD += [np.nextafter(2.0**-25, 1), 6.1e-5, 1e-40, 1e-46, 1024.5, 2049.0, 2051.0, 4294967295.5]


@given(
    st.sampled_from(PLAIN),
    st.lists(st.sampled_from(AWKWARD) | st.floats(allow_nan=False), max_size=20),
)
def test_every_type_is_written(
    copies: ModuleType, datatype: Datatype, numbers: list[float]
) -> None:
    """The nearest, the even one of two; beyond a type's range the last within it."""
    x = np.array([*AWKWARD, *numbers], np.float64)
    found = computed(getattr(copies, f"To_{datatype.name}"), x)
    assert datatype.element_type is not None
    dtype = datatype.element_type.dtype
    with np.errstate(all="ignore"):
        expected = x.astype(dtype)
    if datatype.integer:
        limits = np.iinfo(dtype)
        expected = np.array(
            [min(max(int(np.rint(np.clip(n, -1e30, 1e30))), limits.min), limits.max) for n in x],
            dtype,
        )
    np.testing.assert_array_equal(found, expected)


def test_nan_stays_where_there_is_one(copies: ModuleType) -> None:
    x = np.array([np.nan])
    for datatype in PLAIN:
        (found,) = computed(getattr(copies, f"To_{datatype.name}"), x)
        if datatype.integer:
            assert found == 0
        elif datatype is not Datatype.BOOL_8:
            assert np.isnan(found)


@st.composite
def strided(draw: st.DrawFn) -> Array:
    """Draw a view of an array: transposed, reversed, with gaps, or with strides of 0."""
    rank = draw(st.integers(1, 4))
    shape = [draw(st.integers(0, 5)) for _ in range(rank)]
    dtype = draw(st.sampled_from([np.float32, np.float16]))
    array = np.arange(np.prod(shape), dtype=dtype).reshape(shape) - dtype(7)
    array = array.transpose(draw(st.permutations(range(rank))))
    steps = tuple(slice(None, None, draw(st.sampled_from([1, 2, -1, -2]))) for _ in range(rank))
    array = array[steps]
    if draw(st.booleans()):
        array = np.broadcast_to(array, (draw(st.integers(1, 3)), *array.shape))
    return np.asarray(array)


@given(strided(), st.sampled_from([0.0, 0.5, 3.0]))
def test_strides_are_followed(signals: ModuleType, x: Array, bound: float) -> None:
    found = computed(signals.SoftClip, x, bound=bound)
    wide = x.astype(np.float64)
    np.testing.assert_array_equal(found, (wide / (1 + bound * abs(wide))).astype(x.dtype))


TYPES = [ml_dtypes.int4, np.int8, np.uint8, np.uint16]


@given(
    st.sampled_from(TYPES),
    st.sampled_from([None, 0, 1]),
    st.lists(st.floats(2**-10, 4, width=32), min_size=3, max_size=3),
    st.permutations(range(3)),
    st.integers(0, 7),
)
def test_quantized_tensors_stand_for_reals(
    signals: ModuleType,
    dtype: Any,
    axis: int | None,
    scales: list[float],
    order: Sequence[int],
    zero_point: int,
) -> None:
    """With one scale or one a channel, in strided memory, in and out."""
    low, high = (-8, 7) if dtype is ml_dtypes.int4 else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    count = 1 if axis is None else 3
    x = np.linspace(low, high, 27).astype(np.int64).astype(dtype).reshape(3, 3, 3).transpose(order)
    taken_as = Quantization(tuple(scales[:count]), (zero_point,) * count, axis)
    made_as = Quantization((scales[0] / 2,), (1,))
    found = computed(signals.SoftClip, x, quantization=taken_as, output=made_as, bound=0.25)
    along = np.array(scales[:count], np.float32).astype(np.float64)
    shape = (1, 1, 1) if axis is None else tuple(3 if i == axis else 1 for i in range(3))
    reals = (x.astype(np.float64) - zero_point) * along.reshape(shape)
    clipped = reals / (1 + 0.25 * abs(reals))
    steps = np.rint(clipped / np.float64(np.float32(scales[0] / 2))) + 1
    expected = np.clip(steps, low, high).astype(np.int64).astype(dtype)
    np.testing.assert_array_equal(found.astype(np.int64), expected.astype(np.int64))


def test_what_repeats_and_what_is_left_out(signals: ModuleType) -> None:
    parts = [np.full((2, 2), n, np.float32) for n in (1, 10, 100)]
    assert mixed(signals, parts, None).tolist() == [[111, 111], [111, 111]]
    assert mixed(signals, parts[:2], parts[2]).tolist() == [[111, 111], [111, 111]]
    assert mixed(signals, parts[:1], parts[2].T).tolist() == [[101, 101], [101, 101]]


def mixed(signals: ModuleType, parts: Sequence[Array], long: Array | None) -> Array:
    b = Builder("use")
    inputs = [b.input(f"x{i}", TensorType(ElementType.FLOAT32, (2, 2))) for i in range(len(parts))]
    last = None if long is None else b.input("long", TensorType(ElementType.FLOAT32, (2, 2)))
    b.add(signals.Mix, inputs, last)
    (operation,) = b.operations
    assert isinstance(operation, Operator)
    (result,) = operation.kernel()([*parts, long])
    return result


def test_a_stub_says_that_it_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = SIGNALS.read_text("utf-8").replace('"Signals"', '"Blanks"')
    document = tmp_path / "blanks.xml"
    document.write_text(text, "utf-8")
    project = generated(tmp_path, "native", document).folder
    build(project)
    blanks = imported(project, monkeypatch)
    with pytest.raises(RuntimeError, match=r"returned 2: not written yet: native/soft_clip\.c"):
        computed(blanks.SoftClip, np.ones(3, np.float32))
