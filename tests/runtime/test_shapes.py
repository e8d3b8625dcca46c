"""Shapes that change: what devices that compile known sizes are asked, given, and how often."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper
from tests.modelling import DelegatingDevice, close, float32, model_of, outputs_of

import crosschip
from crosschip.devices.reference import ReferenceProgram
from crosschip.hal import Capabilities, CompileError, Offer, Options, Program, Sizing, Support
from crosschip.ir import (
    Array,
    Builder,
    ElementType,
    InputError,
    Loop,
    Model,
    Operand,
    Operation,
    Shape,
    TensorType,
    UnsupportedError,
    symbol,
    unknown,
)
from crosschip.ir.loops import CONDITION, ITERATION
from crosschip.lowering.static_shapes import is_data_dependent
from crosschip.ops.standard.activation import Relu, Sigmoid, Softmax, Tanh
from crosschip.ops.standard.adaptive_pooling import AdaptiveAveragePool2D
from crosschip.ops.standard.arithmetic import Add
from crosschip.ops.standard.convolution import Conv2D
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape, Transpose
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.searching import NonZero, Unique
from crosschip.runtime.compiled import CompiledModel


class Static(DelegatingDevice):
    """A device that compiles known sizes only.

    Attributes:
        shapes: those of the inputs of each model that it has compiled.
        loaded: those of each that it has loaded.
        unlucky: the first size of a first input for which it does not compile.
        open: how many of its programs are open.
    """

    sizing = Sizing.FIXED

    def __init__(self, *, unlucky: int = -1, max_rank: int | None = None, **more: Any) -> None:
        super().__init__(**more)
        self.unlucky = unlucky
        self.max_rank = max_rank
        self.shapes: list[tuple[Shape, ...]] = []
        self.loaded: list[tuple[tuple[int, ...], ...]] = []
        self.open = 0
        self.most_open = 0

    def capabilities(self) -> Capabilities:
        return Capabilities(sizing=self.sizing, max_rank=self.max_rank, threads=True)

    def query(self, model: Model, options: Options) -> Offer:
        check_known(model)
        return super().query(model, options)

    def compile(self, model: Model, options: Options) -> Program:
        shapes = check_known(model)
        if shapes[0][0] == self.unlucky:
            raise RuntimeError(f"{self.unlucky} is an unlucky number")
        super().compile(model, options)
        self.shapes.append(shapes)
        return StaticProgram(self, model)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        assert saved == b"saved"
        self.loaded.append(check_known(model))
        return StaticProgram(self, model)


class StaticProgram(ReferenceProgram):
    def __init__(self, device: Static, model: Model) -> None:
        super().__init__(model)
        self.device = device
        device.open += 1
        device.most_open = max(device.most_open, device.open)

    def save(self) -> bytes:
        return b"saved"

    def close(self) -> None:
        super().close()
        self.device.open -= 1


def check_known(model: Model) -> tuple[tuple[int, ...], ...]:
    """The shapes of a model's inputs; every size in it must be known, and no input be in vain."""
    assert model.operations
    for operand in (*model.inputs.values(), *(o for p in model.operations for o in p.outputs)):
        assert operand.type.static_shape is not None, operand
    read = {operand for operation in model.operations for operand in operation.inputs}
    assert read.issuperset(model.inputs.values())
    assert not any(operand.is_constant for operand in model.outputs.values())
    return tuple(operand.type.static_shape or () for operand in model.inputs.values())


OPEN = model_of(lambda b, x: b.add(Relu, x), float32(symbol("N")))


def ones(size: int) -> Mapping[str, Array]:
    return {"x0": np.ones(size, np.float32)}


@pytest.fixture
def static() -> Iterator[Static]:
    device = Static(name="static")
    yield device
    assert device.open == 0, "a program was not closed"


def test_profiles_are_compiled_at_once_and_other_shapes_when_they_come(static: Static) -> None:
    profiles = [{"N": 2}, {"N": 3}]
    with crosschip.compile(
        OPEN, [static], shapes=crosschip.ShapeOptions(profiles=profiles), cache=False
    ) as model:
        assert static.shapes == [((2,),), ((3,),)]
        for size in (2, 3, 4, 4, 2):
            np.testing.assert_array_equal(model.run(ones(size))["y0"], np.ones(size))
        assert static.shapes == [((2,),), ((3,),), ((4,),)]
        model.prepare({"x0": (5,)})
        model.run(ones(5))
        assert static.shapes[3:] == [((5,),)]


@pytest.mark.parametrize(
    "profiles",
    [
        [{"N": 2, "M": 4}, {"N": 3, "M": 4}],
        [{"a": (2, 4), "b": (4,)}, {"a": (3, 4)}],
        [{"N": 2, "b": [4]}, {"a": [3, 4], "M": 4}],
        {"a": [[2, 4], [3, 4]]},
        {"a": [(2, 4), (3, 4)], "b": [(4,), (4,)]},
    ],
)
def test_profiles_are_sizes_or_shapes_or_lists_of_shapes(static: Static, profiles: Any) -> None:
    b = Builder()
    n, m = symbol("N"), symbol("M")
    inputs = b.input("a", float32(n, m)), b.input("b", float32(m))
    b.output("c", b.add(Add, *inputs))
    with crosschip.compile(
        b.build(), [static], shapes=crosschip.ShapeOptions(profiles=profiles), cache=False
    ):
        assert static.shapes == [((2, 4), (4,)), ((3, 4), (4,))]


@pytest.mark.parametrize(
    ("profiles", "told"),
    [
        ([{"x0": (2, 2)}], "input 'x0' has shape"),
        ([{"N": 2, "x0": (3,)}], "input 'x0' has shape"),
        ([{"N": -1}], "profiles has"),
        ([{"N": True}], "profiles has"),
        ([{"y": (2,)}], "profiles has"),
        (["N"], "profiles has 'N'"),
        ("N", "profiles is 'N'"),
        (3, "profiles is 3"),
        ({"x0": [(2,)], "y": [(2,), (3,)]}, r"profiles lists \[1, 2\] shapes"),
        ({"x0": 3}, "profiles lists"),
        ({"x0": [3]}, "profiles lists 3 for input 'x0'"),
    ],
)
def test_profiles_that_are_none(profiles: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        crosschip.compile(
            OPEN, "reference", shapes=crosschip.ShapeOptions(profiles=profiles), cache=False
        )


def test_the_report_tells_of_programs_that_runs_needed(tmp_path: Path) -> None:
    """Without a profile nothing is compiled, or loaded, before the first run."""
    expected = (["off", "miss", "miss"], ["off", "hit", "hit"], ["off", "hit", "miss"])
    for words, sizes in zip(expected, ((2, 3), (2, 3), (2, 4)), strict=True):
        device = Static(name="static")
        with crosschip.compile(OPEN, [device], cache=tmp_path) as model:
            told = [model.report.cache]
            for size in sizes:
                model.run(ones(size))
                told.append(model.report.cache)
            assert told == words
            assert f"cache='{words[-1]}'" in repr(model.report)


def test_without_a_cache_the_report_says_so() -> None:
    with crosschip.compile(OPEN, [Static(name="static")], cache=False) as model:
        model.run(ones(2))
        assert model.report.cache == "off"


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    for compiled, loaded, word in (([2, 3], [], "miss"), ([], [2, 3], "hit")):
        device = Static(name="static")
        with crosschip.compile(
            OPEN, [device], shapes=crosschip.ShapeOptions(profiles=[{"N": 2}]), cache=tmp_path
        ) as model:
            model.run(ones(3))
            assert model.report.cache == word
            (found,) = model.statistics().segments
        assert device.shapes == [((size,),) for size in compiled]
        assert device.loaded == [((size,),) for size in loaded]
        assert (found.compiled, found.loaded) == (len(compiled), len(loaded))


def test_so_many_programs_live(static: Static) -> None:
    with crosschip.compile(
        OPEN, [static], shapes=crosschip.ShapeOptions(specializations=2), cache=False
    ) as model:
        for size in (1, 2, 3, 1):
            model.run(ones(size))
            assert static.open <= 2
        assert len(static.shapes) == 4
        model.run(ones(3))
        assert len(static.shapes) == 4
    with pytest.raises(InputError, match="specializations is 0"):
        crosschip.compile(
            OPEN, [static], shapes=crosschip.ShapeOptions(specializations=0), cache=False
        )


def test_a_profile_that_does_not_compile_goes_elsewhere() -> None:
    devices = [Static(name="static", unlucky=13), DelegatingDevice(name="cpu")]
    with crosschip.compile(
        OPEN, devices, shapes=crosschip.ShapeOptions(profiles=[{"N": 13}]), cache=False
    ) as model:
        assert model.placement.decisions[0].device == "cpu"


def test_a_shape_that_does_not_compile_runs_on_the_device_behind(
    warnings: Callable[[], list[str]],
) -> None:
    first, second = Static(name="first", unlucky=13), Static(name="second")
    with crosschip.compile(OPEN, [first, second], cache=False) as model:
        for size in (2, 13, 2, 13):
            np.testing.assert_array_equal(model.run(ones(size))["y0"], np.ones(size))
        assert model.placement.decisions[0].device == "first"
    assert (first.shapes, second.shapes) == ([((2,),)], [((13,),)])
    assert any("13 is an unlucky number" in told for told in warnings())


@pytest.mark.parametrize("more", [{}, {"strict": True}, {"pin": {"RELU": "static"}}])
def test_a_shape_that_does_not_compile_anywhere_is_an_error(more: Any) -> None:
    devices = [Static(name="static", unlucky=13), DelegatingDevice(name="cpu")]
    given = devices if more else devices[:1]
    with crosschip.compile(
        OPEN, given, placement=crosschip.PlacementOptions(**more), cache=False
    ) as model:
        for _ in range(2):
            with pytest.raises(CompileError, match=r"static: .*13 is an unlucky number"):
                model.run(ones(13))
        np.testing.assert_array_equal(model.run(ones(2))["y0"], np.ones(2))


def test_many_threads_that_ask_for_new_shapes_compile_each_once(static: Static) -> None:
    barrier = threading.Barrier(8)
    with crosschip.compile(OPEN, [static], cache=False) as model:

        def work(number: int) -> None:
            barrier.wait(60)
            for size in range(1, 10):
                np.testing.assert_array_equal(model.run(ones(size))["y0"], np.ones(size))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        assert sorted(static.shapes) == [((size,),) for size in range(1, 10)]
        assert model.statistics().segments[0].hits == 8 * 9 - 9


class Bounded(Static):
    """A device that compiles open sizes within a range; others one by one, like all else."""

    sizing = Sizing.BOUNDED

    def query(self, model: Model, options: Options) -> Offer:
        return Offer([Support(True) for _ in model.operations])

    def compile(self, model: Model, options: Options) -> Program:
        self.shapes.append(tuple(o.type.shape or () for o in model.inputs.values()))
        return StaticProgram(self, model)


def test_a_device_that_needs_ranges_compiles_once_with_them_and_else_for_each_shape() -> None:
    bounded = Bounded(name="npu")
    with crosschip.compile(
        OPEN, [bounded], shapes=crosschip.ShapeOptions(ranges={"N": (1, 4)}), cache=False
    ) as model:
        model.run(ones(4))
        model.run(ones(3))
        with pytest.raises(InputError, match="N is 5, but the model was compiled for 1 to 4"):
            model.run(ones(5))
        assert bounded.shapes == [((symbol("N"),),)]
        assert model.placement.shape_strategies == ("open",)
    bounded = Bounded(name="npu")
    with crosschip.compile(OPEN, [bounded], cache=False) as model:
        model.run(ones(4))
        model.run(ones(3))
        assert bounded.shapes == [((4,),), ((3,),)]
        assert model.placement.shape_strategies == ("a program a shape, 16 at most",)


class OpenBatch(Bounded):
    """A device that compiles an open batch, but needs all other sizes."""

    sizing = Sizing.FREE

    def capabilities(self) -> Capabilities:
        return replace(super().capabilities(), open_axes=frozenset({0}))


def test_a_device_may_take_open_sizes_on_some_axes_only() -> None:
    open_model = model_of(lambda b, x: b.add(Relu, x), float32(symbol("N"), 3, symbol("H")))
    runs = [np.ones((batch, 3, 5), np.float32) for batch in (1, 2, 4)]
    device = OpenBatch(name="npu")
    with crosschip.compile(open_model, [device], cache=False, shapes={"H": 5}) as model:
        for array in runs:
            np.testing.assert_array_equal(model(array), array)
        assert device.shapes == [((symbol("N"), 3, 5),)]
        assert model.placement.shape_strategies == ("open",)
    device = OpenBatch(name="npu")
    with crosschip.compile(open_model, [device], cache=False) as model:
        for array in runs:
            np.testing.assert_array_equal(model(array), array)
        assert device.shapes == [(array.shape,) for array in runs]


def test_an_open_axis_counts_where_it_is_computed_too() -> None:
    turned = model_of(lambda b, x: b.add(Transpose, x, (1, 0)), float32(symbol("N"), 3))
    device = OpenBatch(name="npu")
    with crosschip.compile(turned, [device], cache=False) as model:
        assert model(np.ones((2, 3), np.float32)).shape == (3, 2)
        assert device.shapes == [((2, 3),)]


def test_ranges_hold_for_programs_a_shape(static: Static) -> None:
    ranges = {"N": (1, 3, 4)}
    with crosschip.compile(
        OPEN, [static], shapes=crosschip.ShapeOptions(ranges=ranges), cache=False
    ) as model:
        assert static.shapes == [((3,),)], "the usual size is compiled at once"
        model.run(ones(4))
        with pytest.raises(InputError, match="N is 5, but the model was compiled for 1 to 4"):
            model.run(ones(5))


@pytest.mark.parametrize("given", [[(1, 3), (4, 3)], [(1, 3), (2, 3), (4, 3)]])
def test_ranges_are_also_shapes_of_inputs(static: Static, given: Any) -> None:
    images = model_of(lambda b, x: b.add(Relu, x), float32(symbol("N"), 3))
    with crosschip.compile(
        images, [static], shapes=crosschip.ShapeOptions(ranges={"x0": given}), cache=False
    ) as model:
        assert static.shapes == ([((2, 3),)] if len(given) == 3 else [])
        model.run({"x0": np.ones((4, 3), np.float32)})
        with pytest.raises(InputError, match="N is 5, but the model was compiled for 1 to 4"):
            model.run({"x0": np.ones((5, 3), np.float32)})


UNNAMED = model_of(
    lambda b, x, y: (b.add(Relu, x), b.add(Tanh, y)),
    float32(symbol("N"), unknown(), unknown()),
    float32(unknown(), symbol("x0_1")),
)


@pytest.mark.parametrize("device", ["openvino", "onnxruntime", "xla", "reference"])
def test_ranges_by_shapes_of_inputs_hold_for_sizes_without_a_name(device: str) -> None:
    """They are told by input and axis; that one is called so already changes nothing."""
    ranges: Any = {"x0": [(1, 4, 8), (2, 6, 9)], "x1": [(1, 1), (5, 7)]}
    with crosschip.compile(
        UNNAMED, device, shapes=crosschip.ShapeOptions(ranges=ranges), cache=False
    ) as model:
        inputs = {"x0": np.ones((2, 5, 9), np.float32), "x1": np.ones((4, 3), np.float32)}
        for name, made in outputs_of(UNNAMED, inputs).items():
            close(model.run(inputs)[name], made)
        with pytest.raises(InputError, match="x0_2 is 10, but the model was compiled for 8"):
            model.run({**inputs, "x0": np.ones((2, 5, 10), np.float32)})
        with pytest.raises(InputError, match="x1_0 is 6, but the model was compiled for 1"):
            model.run({**inputs, "x1": np.ones((6, 3), np.float32)})
        with pytest.raises(InputError, match="x0_1 is 9, but the model was compiled for 1"):
            model.run({**inputs, "x1": np.ones((1, 9), np.float32)})


def test_profiles_by_shapes_of_inputs_hold_for_sizes_without_a_name(
    static: Static, tmp_path: Path
) -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    ends = [helper.make_tensor_value_info(name, 1, ["N", 3, None, None]) for name in "xy"]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    profiles: Any = [{"x": (1, 3, 48, 320)}, {"x": (2, 3, 32, 64)}]
    with crosschip.compile(
        proto, [static], shapes=crosschip.ShapeOptions(profiles=profiles), cache=tmp_path
    ) as model:
        assert static.shapes == [((1, 3, 48, 320),), ((2, 3, 32, 64),)]
        assert model(np.ones((2, 3, 32, 64), np.float32)).shape == (2, 3, 32, 64)
        assert len(static.shapes) == 2
    crosschip.load(proto)  # takes further numbers for sizes without names
    with crosschip.compile(
        proto, [static], shapes=crosschip.ShapeOptions(profiles=profiles), cache=tmp_path
    ):
        assert len(static.shapes) == 2, "it is found in the cache"


@pytest.mark.parametrize("given", [{"x0": (None, 5, None)}, {"x0": [None, 5, None], "x1": (4, 3)}])
def test_none_in_a_shape_leaves_a_size_open(given: Any) -> None:
    with crosschip.compile(UNNAMED, "reference", cache=False, shapes=given) as model:
        assert str(model.inputs["x0"].type) == "float32[N, 5, ?]"
        for rows in (1, 2):
            shapes = {"x0": (rows, 5, 9), "x1": (4, 3)}
            made = model.run({n: np.ones(shape, np.float32) for n, shape in shapes.items()})
            assert made["y0"].shape == (rows, 5, 9)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"x0": (None, 5)}, "input 'x0' has shape"),
        ({"x0": (None, -5, None)}, "is not the size 'x0'"),
        ({"x0": (None, 5, None), "x0_1": "a"}, "is not the size 'x0_1'"),
        ({"x1": (None, 3), "x0_1": 4}, "the size x0_1 is given as 3 and as 4"),
        ({"x0_1": 4, "x1": (None, 3)}, "input 'x1' has shape"),
        ({"x0": "abc"}, "with None for a size that stays open, or give single sizes by their name"),
    ],
)
def test_shapes_that_are_none_tell_how_to_give_single_sizes(given: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        crosschip.compile(UNNAMED, "reference", cache=False, shapes=given)


@pytest.mark.parametrize(
    "bounds", [(-1, 4), (5, 4), 3, (1,), ("a", "b"), (True, 2), (1, 5, 4), (1, 2, 3, 4), "12"]
)
def test_a_range_that_is_none_is_refused(bounds: Any) -> None:
    with pytest.raises(InputError, match="range of size 'N'"):
        crosschip.compile(
            OPEN, "reference", shapes=crosschip.ShapeOptions(ranges={"N": bounds}), cache=False
        )


def test_ranges_that_do_not_fit_the_inputs_are_refused() -> None:
    for given, told in (
        ({"x0": ((1, 2), (3, 2))}, "input 'x0' has shape"),
        ({"x0": ((4,), (3,))}, "range of size 'N'"),
        ({"x0": ((1,), (3,)), "N": (1, 4)}, "the size N is given the range"),
    ):
        shapes = crosschip.ShapeOptions(ranges=given)  # type: ignore[arg-type]
        with pytest.raises(InputError, match=told):
            crosschip.compile(OPEN, "reference", shapes=shapes, cache=False)


def test_what_a_device_cannot_do_with_any_size_is_declined_at_once() -> None:
    deep = model_of(lambda b, x: b.add(Relu, x), float32(1, 1, symbol("N")))
    with pytest.raises(UnsupportedError, match="has 3 axes, more than 2"):
        crosschip.compile(deep, [Static(name="npu", max_rank=2)], cache=False)
    curved = model_of(lambda b, x: b.add(Tanh, x), float32(symbol("N")))
    with pytest.raises(UnsupportedError, match="TANH: not implemented"):
        crosschip.compile(curved, [Static(name="npu", declines={"TANH"})], cache=False)


def test_sizes_that_depend_on_data_go_elsewhere_and_what_reads_them_does_not(
    static: Static,
) -> None:
    def build(b: Builder, x: Operand) -> Operand:
        return b.add(Sigmoid, b.add(Gather, x, b.add(Reshape, b.add(NonZero, x), (-1,))))

    model = model_of(build, float32(symbol("N")))
    with crosschip.compile(model, [static, "reference"], cache=False) as compiled:
        devices = {d.type: d.device for d in compiled.placement.decisions}
        assert devices["NON_ZERO"] == "reference"
        assert devices["SIGMOID"] == "static"
        for array in ([0, 2, 0, 3], [1, 2, 0, 3], [0, 0, 0, 0]):
            given = {"x0": np.array(array, np.float32)}
            close(compiled.run(given)["y0"], outputs_of(model, given)["y0"])
    with pytest.raises(UnsupportedError, match="NON_ZERO: a size depends on data"):
        crosschip.compile(model, [static], cache=False)


class Finding(Static):
    """A device that compiles known sizes, and what makes as much as the data asks for.

    Attributes:
        alone: the types of operations that came with open sizes in what they make.
    """

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.alone: list[str] = []

    def capabilities(self) -> Capabilities:
        return replace(super().capabilities(), data_dependent_sizes=True)

    def query(self, model: Model, options: Options) -> Offer:
        return DelegatingDevice.query(self, model, options)

    def compile(self, model: Model, options: Options) -> Program:
        if not any(map(is_data_dependent, model.operations)):
            return super().compile(model, options)
        (operation,) = model.operations
        assert all(operand.type.static_shape is not None for operand in model.inputs.values())
        self.alone.append(operation.type)
        return StaticProgram(self, model)


@pytest.mark.parametrize("shape", [(symbol("N"),), (6,), None])
def test_sizes_that_depend_on_data_stay_where_a_device_does_with_them(
    shape: Shape | None,
) -> None:
    """Each such operation comes by itself, once for each set of shapes of what it reads."""

    def build(b: Builder, x: Operand) -> Operand:
        found = b.add_all(Unique, b.add(Relu, x))[0]
        places = b.add(Reshape, b.add(NonZero, found), (-1,))
        return b.add(Sigmoid, b.add(Gather, found, places))

    model = model_of(build, TensorType(ElementType.FLOAT32, shape))
    device = Finding(name="finding")
    with crosschip.compile(model, [device], cache=False) as compiled:
        assert [len(segment.operations) for segment in compiled.placement.segments] == [1, 1, 1, 3]
        for array in ([0, 2, 0, 3, -1, 2], [1, 2, 5, 3, 4, 6], [0, -1, 0, 0, 0, 0]):
            given = {"x0": np.array(array, np.float32)}
            close(compiled.run(given)["y0"], outputs_of(model, given)["y0"])
    assert device.alone == ["UNIQUE", *["NON_ZERO"] * 3]
    assert device.open == 0


def sequence(b: Builder, x: Operand) -> tuple[Operand, Operand]:
    """A sequence of any length, and batch, of which the heads are split by its own shape."""
    batch = b.add(Gather, b.add(ShapeOf, x), b.constant(np.array([0])), 0)
    wanted = b.add(Concat, [batch, b.constant(np.array([-1, 2, 4]))], 0)
    heads = b.add(Reshape, x, wanted)
    scores = b.add(Softmax, b.add(MatMul, x, x, transpose_y=True), -1)
    return b.add(MatMul, scores, x), b.add(Reshape, b.add(Relu, heads), (0, 0, -1))


def image(b: Builder, x: Operand) -> Operand:
    random = np.random.default_rng(0)
    weights = b.constant(random.normal(size=(4, 3, 3, 3)).astype(np.float32))
    pooled = b.add(AdaptiveAveragePool2D, b.add(Relu, b.add(Conv2D, x, weights)), (1, 1))
    return b.add(Reshape, pooled, (0, -1))


@pytest.mark.parametrize("device", ["reference", "onnxruntime", "openvino", "xla", "static"])
def test_unknown_batch_image_and_length_on_every_device(device: str) -> None:
    lengths = float32(symbol("batch"), symbol("length"), 8)
    images = float32(symbol("N"), 3, symbol("H"), symbol("W"))
    random = np.random.default_rng(1)
    given = Static(name="static") if device == "static" else device
    for model, shapes in (
        (model_of(sequence, lengths), [(1, 3, 8), (2, 5, 8), (1, 3, 8)]),
        (model_of(image, images), [(1, 3, 8, 9), (2, 3, 5, 5), (1, 3, 8, 9)]),
    ):
        with crosschip.compile(model, [given], cache=False) as compiled:
            for shape in shapes:
                inputs = {"x0": random.normal(size=shape).astype(np.float32)}
                found, expected = compiled.run(inputs), outputs_of(model, inputs)
                for name in expected:
                    np.testing.assert_allclose(found[name], expected[name], rtol=1e-4, atol=1e-5)


def test_what_follows_from_shapes_needs_no_device(static: Static) -> None:
    model = model_of(
        lambda b, x: (b.add(ShapeOf, x), b.add(Relu, x)), float32(symbol("N"), symbol("M"))
    )
    with crosschip.compile(model, [static], cache=False) as compiled:
        for shape in ((2, 3), (3, 2), (2, 3)):
            found = compiled.run({"x0": np.ones(shape, np.float32)})
            assert found["y0"].tolist() == list(shape)
            found["y0"][...] = 77
    only = model_of(lambda b, x: b.add(ShapeOf, x), float32(symbol("N")))
    with crosschip.compile(only, [static], cache=False) as compiled:
        assert compiled.run(ones(5))["y0"].tolist() == [5]
        assert len(static.shapes) == 2


def test_sizes_that_another_device_has_computed(static: Static) -> None:
    """Their elements count besides the shapes: the same shapes need another program."""

    def build(b: Builder, x: Operand, y: Operand) -> Operand:
        size = b.add(ShapeOf, y)
        return b.add(Reshape, x, b.add(Concat, [size, b.constant(np.array([-1]))], 0))

    model = model_of(build, float32(12), float32(symbol("N")))
    pins = {"SHAPE": "reference", "CONCAT": "reference"}
    with crosschip.compile(
        model, [static, "reference"], placement=crosschip.PlacementOptions(pin=pins), cache=False
    ) as compiled:
        for size in (3, 4, 3, 2):
            inputs = {"x0": np.arange(12, dtype=np.float32), "x1": np.ones(size, np.float32)}
            assert compiled.run(inputs)["y0"].shape == (size, 12 // size)
        compiled.prepare({"x0": (12,), "x1": (6,)})
        assert len(static.shapes) == 4


def test_sizes_that_no_definition_allows_are_an_error_of_that_run(static: Static) -> None:
    model = model_of(lambda b, x, y: b.add(Add, x, y), float32(symbol("N")), float32(symbol("M")))
    with crosschip.compile(model, [static], cache=False) as compiled:
        with pytest.raises(CompileError, match=r"static: .*ADD"):
            compiled(np.ones(2, np.float32), np.ones(3, np.float32))
        assert compiled(np.ones(2, np.float32), np.ones(2, np.float32)).tolist() == [2, 2]


def test_what_is_there_is_told(static: Static) -> None:
    placement = crosschip.explain(
        OPEN, [static], shapes=crosschip.ShapeOptions(specializations=5, buckets={"N": [4, 2]})
    )
    assert placement.shape_strategies == ("a program a shape, 5 at most; pads N to 2, 4",)
    assert crosschip.explain(OPEN, "reference").shape_strategies == ("open",)
    assert crosschip.explain(OPEN, [static], shapes={"N": 3}).shape_strategies == ("fixed",)


def figures(model: CompiledModel) -> dict[str, Any]:
    """The statistics of the only segment, by way of JSON."""
    told = json.loads(json.dumps(model.statistics().to_json()))
    (segment,) = told["segments"]
    return {**segment, "calls": told["calls"]}


def test_statistics(static: Static) -> None:
    with crosschip.compile(
        OPEN, [static], shapes=crosschip.ShapeOptions(specializations=2), cache=False
    ) as model:
        for size in (1, 2, 2, 3, 1):
            model.run(ones(size))
        model.submit(ones(1)).result()
        found = figures(model)
        assert found == {
            **{"name": "model.0", "device": "static", "calls": 6, "runs": 6, "padded": 0},
            **{"programs": 2, "hits": 2, "compiled": 4, "loaded": 0, "evicted": 2},
            **{"bytes_in": 40, "bytes_out": 40, "shapes": "a program a shape, 2 at most"},
        }
        text = str(model.statistics())
        assert text.startswith("6 calls: median ")
        assert text.splitlines()[-1].split()[:2] == ["model.0", "static"]


@pytest.mark.parametrize(("open_", "way"), [(True, "open"), (False, "fixed")])
def test_statistics_of_a_device_that_compiles_open_sizes(open_: bool, way: str) -> None:
    shapes = None if open_ else {"N": 3}
    with crosschip.compile(OPEN, "reference", cache=False, shapes=shapes) as model:
        assert figures(model)["bytes_in"] == 0
        for size in (3, 5, 3) if open_ else (3, 3, 3):
            model.run(ones(size))
        found = figures(model)
        total = 4 * (11 if open_ else 9)
        assert (found["runs"], found["bytes_in"], found["bytes_out"]) == (3, total, total)
        assert (found["shapes"], found["programs"], found["compiled"]) == (way, 1, 0)


def lru_misses(order: Sequence[object], most: int) -> int:
    """The fetches that it takes to keep so many, dropping the least recently used."""
    kept: list[object] = []
    count = 0
    for one in order:
        if one in kept:
            kept.remove(one)
        else:
            count += 1
        kept = [*kept, one][-most:]
    return count


@pytest.mark.slow
def test_as_few_programs_are_compiled_as_the_order_allows(static: Static) -> None:
    """20 sizes of images in random order, 2,000 calls, 8 programs."""
    model = model_of(image, float32(1, 3, symbol("H"), symbol("W")))
    sizes = list(itertools.product((4, 5, 6, 7, 8), (4, 5, 6, 7)))
    order = [sizes[index] for index in np.random.default_rng(2).integers(0, 20, 2000)]
    arrays = {
        (h, w): np.random.default_rng(h * w).normal(size=(1, 3, h, w)).astype(np.float32)
        for h, w in sizes
    }
    expected = {size: outputs_of(model, {"x0": array})["y0"] for size, array in arrays.items()}
    with crosschip.compile(
        model, [static], shapes=crosschip.ShapeOptions(specializations=8), cache=False
    ) as compiled:
        for size in order:
            np.testing.assert_array_equal(compiled(arrays[size]), expected[size])
        (found,) = compiled.statistics().segments
    assert found.compiled == len(static.shapes) == lru_misses(order, 8)
    assert found.hits == 2000 - found.compiled
    assert found.evicted == found.compiled - 8
    assert static.most_open <= 9, "the one that goes is closed once its successor is there"


def doubled_body(type_: TensorType) -> Model:
    """A loop's body that doubles what it is given."""
    b = Builder("body")
    b.input("i", ITERATION)
    condition = b.input("going", CONDITION)
    b.output("goes_on", condition)
    state = b.input("state", type_)
    b.output("next", b.add(Add, state, state))
    return b.build()


class Plain(Static):
    """A device that leaves control flow to the runtime."""

    def supports(self, operation: Operation, options: Options) -> Support:
        if operation.bodies:
            return Support.no(operation, "", "is left to the runtime")
        return super().supports(operation, options)


def test_profiles_and_preparation_reach_bodies() -> None:
    type_ = float32(symbol("N"))
    b = Builder("looped")
    x, count = b.input("x", type_), b.input("n", TensorType(ITERATION.element_type, ()))
    (looped,) = b.insert(Loop.of("loop", count, None, [x], [], doubled_body(type_)))
    b.output("y", b.add(Relu, looped))
    device = Plain(name="static")
    with crosschip.compile(
        b.build(), [device], shapes=crosschip.ShapeOptions(profiles=[{"N": 2}]), cache=False
    ) as compiled:
        assert sorted(device.shapes) == [((2,),)] * 2, "the body's and the other"
        compiled.prepare({"x": (3,), "n": ()})
        assert sorted(device.shapes) == [((2,),)] * 2 + [((3,),)] * 2
        for size in (2, 3, 5):
            given = np.ones(size, np.float32)
            assert compiled(given, np.array(4)).tolist() == [16] * size
        assert len(device.shapes) == 6
        body = next(s for s in compiled.statistics().segments if s.runs == 12)
        assert (body.device, body.compiled, body.hits) == ("static", 3, 12 - 1)
        assert set(compiled.placement.all_shape_strategies()) == {
            "",
            "a program a shape, 16 at most",
        }
