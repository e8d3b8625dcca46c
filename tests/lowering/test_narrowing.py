"""Devices that compute integers in fewer bits, against int64."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from tests.random_integers import Integers, integers

import crosschip
from crosschip.devices.reference import ReferenceDevice, ReferenceProgram
from crosschip.hal import Capabilities, Device, Kind, Options, Program, Rule, Support
from crosschip.hal.conditions import InputRange, OutOfRange, SizeRange
from crosschip.hal.device import single_operation_model
from crosschip.ir import (
    Array,
    Builder,
    DeviceError,
    ElementType,
    Model,
    Operand,
    Operation,
    TensorType,
    UnsupportedError,
    symbol,
    unknown,
)
from crosschip.lowering.narrowing import conditions_of
from crosschip.ops.standard.arithmetic import Add, Clip, FloorDiv, Max, Mul, Sub
from crosschip.ops.standard.comparison import Less
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.indexing import Gather
from crosschip.ops.standard.layout import Reshape
from crosschip.ops.standard.reduction import CumSum, ReduceProd
from crosschip.ops.standard.slicing import Slice
from crosschip.ops.standard.unary import Neg

WIDE, HALF = ElementType.INT64, ElementType.INT16


class NarrowProgram(Program):
    """Runs operations one by one, and truncates int64 to 16 bits."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._steps = [(o, ReferenceProgram(single_operation_model(o))) for o in model.operations]

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        values: dict[Operand, Array] = {}
        for operand, array in zip(self._model.inputs.values(), inputs, strict=True):
            values[operand] = _narrow(array)
        for operation, program in self._steps:
            read = dict.fromkeys(o for o in operation.inputs if o and not o.is_constant)
            made = program.run([values[operand] for operand in read])
            values.update(zip(operation.outputs, map(_narrow, made), strict=True))
        return [
            values[o] if o in values else np.asarray(o.value) for o in self._model.outputs.values()
        ]


def _narrow(array: Array) -> Array:
    return array.astype(np.int16).astype(np.int64) if array.dtype == np.int64 else array


class NarrowDevice(Device):
    """A device that declares to compute int64 in 16 bits."""

    vendor = "tests"
    kind = Kind.ACCELERATOR
    version = "1"

    def __init__(
        self,
        *,
        narrowed: Mapping[ElementType, ElementType] | None = None,
        bits: Mapping[type[Operation], int] | None = None,
    ) -> None:
        super().__init__()
        self.bits: Mapping[type[Operation], int] = {Less: 8} if bits is None else bits
        self.name = "narrow"
        self.narrowed = {WIDE: HALF} if narrowed is None else narrowed

    def capabilities(self) -> Capabilities:
        return Capabilities(narrowed=self.narrowed)

    def supports(self, operation: Operation, options: Options) -> Support:
        return Support(True, bits=self.bits.get(type(operation)))

    def compile(self, model: Model, options: Options) -> Program:
        return NarrowProgram(model)


def compiled(model: Model, *devices: Device, **more: Any) -> crosschip.CompiledModel:
    """Compile the model for a narrow device, and for others if there are any."""
    return crosschip.compile(model, [NarrowDevice(), *devices], cache=False, **more)


@pytest.mark.slow
@settings(max_examples=150)
@given(integers(bits=16))
def test_what_runs_is_right(example: Integers) -> None:
    """Alone, the device is right or refuses; with a device of 64 bits, nothing is refused."""
    arrays = [example.inputs[name] for name in example.model.inputs]
    expected = ReferenceProgram(example.model).run(arrays)
    with compiled(example.model, ReferenceDevice()) as both:
        for made, right in zip(both.run(example.inputs).values(), expected, strict=True):
            np.testing.assert_array_equal(made, right)
    try:
        only = compiled(example.model)
    except UnsupportedError:
        return
    with only:
        try:
            found = only.run(example.inputs)
        except OutOfRange:
            return
        for made, right in zip(found.values(), expected, strict=True):
            np.testing.assert_array_equal(made, right)


def model_of(build: Any, shape: Sequence[Any] = (3,), type_: ElementType = WIDE) -> Model:
    """Return a model with one input `x`."""
    b = Builder("narrow")
    b.output("y", build(b, b.input("x", TensorType(type_, tuple(shape)))))
    return b.build()


def run(model: Model, numbers: Sequence[int], *devices: Device) -> Array:
    """Return the output for some numbers."""
    with compiled(model, *devices) as one:
        made: Array = one.run({"x": np.array(numbers)})["y"]
        return made


@pytest.mark.parametrize(
    ("build", "low", "high"),
    [
        (lambda b, x: b.add(Reshape, x, (3, 1)), -(2**15), 2**15 - 1),
        (lambda b, x: b.add(Neg, x), -(2**14), 2**14 - 1),
        (lambda b, x: b.add(Sub, np.array(1), x), -(2**14), 2**14 - 1),
        (lambda b, x: b.add(Mul, x, x), -(2**7), 2**7 - 1),
        (lambda b, x: b.add(Mul, x, np.array(1000)), -32, 31),
        (lambda b, x: b.add(Less, x, np.array(7)), -(2**8), 2**8 - 1),
    ],
)
def test_inputs_may_be_what_fits(build: Any, low: int, high: int) -> None:
    model = model_of(build)
    (condition,) = conditions_of(NarrowDevice(), model, Options())
    assert condition == InputRange("x", low, high, "narrow")
    inside = [low, 0, high]
    (expected,) = ReferenceProgram(model).run([np.array(inside)])
    np.testing.assert_array_equal(run(model, inside), expected)
    for beyond in (low - 1, high + 1, 2**40, -(2**63)):
        words = rf"narrow: input 'x': {beyond} is not from {low} to {high}.*add a device"
        with pytest.raises(OutOfRange, match=words):
            run(model, [0, beyond, 1])


def test_runs_that_do_not_fit_go_elsewhere(caplog: pytest.LogCaptureFixture) -> None:
    model = model_of(lambda b, x: b.add(Mul, x, x))
    with compiled(model, ReferenceDevice()) as both:
        for numbers in ([1, 2, 3], [2**20, 0, 1], [5, 5, 5], [2**21, 0, 1]):
            made = both.run({"x": np.array(numbers)})["y"]
            np.testing.assert_array_equal(made, np.array(numbers) ** 2)
            request = both.submit({"x": np.array(numbers)})
            np.testing.assert_array_equal(request.result()["y"], np.array(numbers) ** 2)
    assert [record.message for record in caplog.records].count(caplog.records[0].message) == 1
    assert "1048576 is not from -128 to 127" in caplog.text
    assert "other devices execute such runs" in caplog.text


def test_what_cannot_fit_goes_elsewhere() -> None:
    """The narrow device does not read numbers of another device that need more bits."""
    b = Builder("hash")
    x = b.input("x", TensorType(WIDE, (3,)))
    y = b.add(Mul, b.add(Add, x, np.array(1)), np.array(2**40))
    b.output("y", b.add(Cast, y, ElementType.FLOAT32))
    model = b.build()
    with pytest.raises(UnsupportedError, match=r"MUL.input1: int64 is computed in int16"):
        compiled(model)
    with compiled(model, ReferenceDevice()) as both:
        assert [d.device for d in both.placement.decisions] == ["narrow", "reference", "reference"]
        assert both.placement.decisions[1].refusals[0].rule is Rule.RANGE
        assert "does not hold values from 1099511627776" in both.placement.summary()


def test_sizes_that_do_not_fit_are_refused() -> None:
    model = model_of(lambda b, x: b.add(ReduceProd, b.add(ShapeOf, x)), [symbol("N"), 100])
    held = -(2**15), 2**15 - 1
    assert set(conditions_of(NarrowDevice(), model, Options())) == {
        SizeRange(symbol("N"), 0, held[1], "narrow"),
        SizeRange(symbol("N") * 100, *held, "narrow"),
    }
    with compiled(model) as only:
        assert only.run({"x": np.zeros((327, 100), np.int64)})["y"] == 32700
        with pytest.raises(OutOfRange, match=r"size 100 \* N: 32800 is not from"):
            only.run({"x": np.zeros((328, 100), np.int64)})


def test_sizes_that_show_in_a_run_rely_on_those_that_they_are_made_of() -> None:
    """A dimension without a name is at most the size that it is a part of."""
    b = Builder()
    x = b.input("x", TensorType(ElementType.FLOAT32, (symbol("N"),)))
    ends = b.add(Sub, b.add(ShapeOf, x), np.array([1]))
    part = b.add(Slice, x, axes=(0,), starts=(0,), ends=ends)
    b.output("y", b.add(Add, b.add(ShapeOf, part), np.array([1])))
    model = b.build()
    device = NarrowDevice(narrowed={WIDE: ElementType.INT32})
    assert SizeRange(symbol("N"), 0, 2**20, "narrow") in conditions_of(device, model, Options())
    with crosschip.compile(model, [device], cache=False) as only:
        assert only.run({"x": np.zeros(7, np.float32)})["y"] == 7


def test_sums_over_open_sizes_make_inputs_and_sizes_smaller() -> None:
    model = model_of(lambda b, x: b.add(CumSum, x, 0), [symbol("N")])
    device = NarrowDevice(narrowed={WIDE: ElementType.INT32})
    found = conditions_of(device, model, Options())
    assert set(found) == {
        InputRange("x", -(2**11), 2**11 - 1, "narrow"),
        SizeRange(symbol("N"), 0, 2**20, "narrow"),
    }
    bounded = crosschip.compile(
        model, [device], shapes=crosschip.ShapeOptions(ranges={"N": (1, 64)}), cache=False
    )
    assert InputRange("x", -(2**25), 2**25 - 1, "narrow") in bounded.placement.conditions


def test_products_of_sizes_are_smaller_where_fewer_bits_are_there() -> None:
    """Exporters compute the number of rows as all elements divided by the row length."""
    n, m = symbol("N"), symbol("M")

    def rows(b: Builder, x: Operand) -> Operand:
        sizes = b.add(ShapeOf, x)
        own, every = b.add(Gather, sizes, np.array([1]), 0), b.add(ReduceProd, sizes)
        return b.add(FloorDiv, every, own)

    device = NarrowDevice(narrowed={WIDE: ElementType.INT32}, bits={FloorDiv: 24})
    found = conditions_of(device, model_of(rows, [n, m]), Options())
    assert set(found) == {
        *(SizeRange(size, 0, 2**20, "narrow") for size in (n, m)),
        SizeRange(n * m, -(2**31), 2**20, "narrow"),
    }


def test_conditions_are_for_the_operations_that_a_device_gets() -> None:
    b = Builder("two")
    x, y = (b.input(name, TensorType(WIDE, (3,))) for name in "xy")
    b.output("z", b.add(Neg, x, name="here"))
    b.output("w", b.add(Mul, y, y, name="there"))
    with compiled(
        b.build(),
        ReferenceDevice(),
        placement=crosschip.PlacementOptions(pin={"there": "reference"}),
    ) as both:
        assert [each.input for each in both.placement.conditions] == ["x"]  # type: ignore[union-attr]
        made = both.run({"x": np.array([1, 2, 3]), "y": np.array([2**31, 0, 1])})
    np.testing.assert_array_equal(made["w"], [2**62, 0, 1])


class SavingDevice(NarrowDevice):
    """A narrow device that saves its programs."""

    def compile(self, model: Model, options: Options) -> Program:
        program = NarrowProgram(model)
        program.save = lambda: b"saved"  # type: ignore[method-assign]
        return program

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        return NarrowProgram(model)


def test_conditions_of_a_saved_model() -> None:
    length = [symbol("N")]
    model = model_of(lambda b, x: b.add(Add, b.add(Gather, b.add(ShapeOf, x), [0], 0), x), length)
    with crosschip.compile(model, [SavingDevice()], cache=False) as one:
        conditions, content = one.placement.conditions, one.to_bytes()
    with crosschip.load_compiled(content, devices=[SavingDevice()]) as loaded:
        assert set(loaded.placement.conditions) == set(conditions)
        assert loaded.run({"x": np.array([1, -2])})["y"].tolist() == [3, 0]
        with pytest.raises(OutOfRange, match="input 'x': 2147483648"):
            loaded.run({"x": np.array([2**31])})


def test_conditions_on_sizes_without_names_of_a_saved_model() -> None:
    def columns(b: Builder, x: Operand, y: Operand) -> Operand:
        return b.add(
            Mul, b.add(ReduceProd, b.add(ShapeOf, x)), b.add(ReduceProd, b.add(ShapeOf, y))
        )

    b = Builder("sizes")
    x, y = (b.input(name, TensorType(WIDE, (unknown(), 100))) for name in "xy")
    b.output("z", columns(b, x, y))
    with crosschip.compile(b.build(), [SavingDevice()], cache=False) as one:
        content = one.to_bytes()
    with crosschip.load_compiled(content, devices=[SavingDevice()]) as loaded:
        one_row, rows = np.zeros((1, 100), np.int64), np.zeros((328, 100), np.int64)
        assert loaded.run({"x": one_row, "y": one_row})["z"] == 10000
        for given in ({"x": rows, "y": one_row[:0]}, {"x": one_row[:0], "y": rows}):
            with pytest.raises(OutOfRange, match=r"size 100 \* \?: 32800 is not from"):
                loaded.run(given)


def test_capabilities_that_make_no_sense() -> None:
    model = model_of(lambda b, x: b.add(Neg, x))
    device = NarrowDevice(narrowed={WIDE: ElementType.FLOAT32})
    with pytest.raises(DeviceError, match="int64 cannot be narrowed to float32"):
        crosschip.compile(model, [device], cache=False)


def test_capabilities_cross_processes() -> None:
    told = NarrowDevice().capabilities()
    encoded = msgspec.msgpack.encode(told)
    assert msgspec.msgpack.Decoder(Capabilities).decode(encoded) == told


def test_parts_of_an_operation_have_conditions_too() -> None:
    """The device refuses an operator, and computes one of its parts in fewer bits."""

    class Parts(NarrowDevice):
        def supports(self, operation: Operation, options: Options) -> Support:
            if isinstance(operation, Clip):
                return Support.no(operation, "", "not implemented on this device", Rule.OPERATOR)
            return Support(True, bits=8 if isinstance(operation, Max) else None)

    def clipped(b: Builder, x: Operand) -> Operand:
        return b.add(Clip, x, -7, 100)

    device = Parts(narrowed={})
    with pytest.raises(UnsupportedError, match="not implemented"):
        # Nothing else says which numbers come in, and a part alone has no conditions on them.
        crosschip.compile(model_of(clipped), [device], cache=False)
    model = model_of(lambda b, x: clipped(b, b.add(Max, x, np.array(-9))))
    with crosschip.compile(model, [device], cache=False) as only:
        assert [decision.type for decision in only.placement.decisions] == ["MAX", "CLIP"]
        assert all(isinstance(one, InputRange) for one in only.placement.conditions)
        made = only.run({"x": np.array([-(2**8), 2**8 - 1, 3])})["y"]
        assert made.tolist() == [-7, 100, 3]
        with pytest.raises(OutOfRange, match="input 'x': 256 is not from -256 to 255"):
            only.run({"x": np.array([0, 0, 2**8])})
