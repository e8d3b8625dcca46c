"""Devices without int64, which get int32 in its place."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx
import pytest
from onnxruntime import InferenceSession
from tests.devices.transformers import MODELS, inputs_for
from tests.modelling import DelegatingDevice, model_of

import crosschip
from crosschip.hal import Capabilities, Device, Options, Program
from crosschip.hal.conditions import OutOfRange
from crosschip.ir import Array, Builder, ElementType, Model, Operand, TensorType
from crosschip.ir.types import ALL_TYPES
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.searching import ArgMax

INT32, INT64 = ElementType.INT32, ElementType.INT64


class Narrow(DelegatingDevice):
    """A device that lacks int64, and checks that it gets none."""

    def capabilities(self) -> Capabilities:
        return Capabilities(types=ALL_TYPES - {INT64}, narrowed={INT64: INT32})

    def compile(self, model: Model, options: Options) -> Program:
        operands = [*model.inputs.values(), *model.outputs.values()]
        operands += [o for operation in model.operations for o in operation.outputs]
        assert not [o for o in operands if o.type.element_type is INT64]
        return super().compile(model, options)


def by_onnxruntime(model: onnx.ModelProto, inputs: Mapping[str, Array]) -> dict[str, Array]:
    session = InferenceSession(model.SerializeToString())
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(None, dict(inputs)), strict=True))


@pytest.mark.parametrize("declines", [[], ["SOFTMAX", "GATHER"]], ids=["whole", "in parts"])
@pytest.mark.parametrize("name", ["bert", "decoder", "gpt"])
def test_transformers_run_on_a_chip_without_int64(name: str, declines: list[str]) -> None:
    model = MODELS[name]()
    devices: list[str | Device] = [Narrow(declines=declines), *["reference"][: len(declines)]]
    with crosschip.compile(model, devices, cache=False) as compiled:
        names = {decision.device for decision in compiled.placement.decisions}
        assert names == ({"test", "reference"} if declines else {"test"})
        for sizes in ((1, 5, 0), (2, 9, 4)):
            inputs = inputs_for(model, *sizes)
            expected = by_onnxruntime(model, inputs)
            for output, array in compiled.run(inputs).items():
                assert array.dtype == expected[output].dtype
                np.testing.assert_allclose(array, expected[output], rtol=1e-4, atol=1e-5)


def counting() -> Model:
    def make(b: Builder, x: Operand) -> tuple[Operand, ...]:
        return b.add(ShapeOf, x), b.add(ArgMax, x, 0)

    return model_of(make, TensorType(ElementType.FLOAT32, (2, 3)))


def test_what_makes_int64_unless_told_otherwise_makes_int32() -> None:
    model = counting()
    x = np.array([[1, 5, 2], [7, 0, 3]], np.float32)
    assert all(operand.type.element_type is INT64 for operand in model.outputs.values())
    with crosschip.compile(model, [Narrow()], cache=False) as compiled:
        shape, best = compiled.run({"x0": x}).values()
    assert (shape.dtype, best.dtype) == (np.int64, np.int64)
    np.testing.assert_array_equal(shape, [2, 3])
    assert best.reshape(-1).tolist() == np.argmax(x, 0).tolist()


def scaled(factor: int) -> Model:
    def make(b: Builder, x: Operand) -> Operand:
        return b.add(Add, b.add(Mul, x, b.constant(np.array([factor], np.int64))), x)

    return model_of(make, TensorType(INT64, (2,)))


@pytest.mark.parametrize("devices", [["test"], ["test", "reference"]], ids=len)
def test_numbers_that_do_not_fit_are_refused_or_go_elsewhere(devices: list[str]) -> None:
    given: list[str | Device] = [Narrow(), *devices[1:]]
    with crosschip.compile(scaled(1000), given, cache=False) as compiled:
        few, many = np.array([-3, 2**20]), np.array([1, 2**40])
        np.testing.assert_array_equal(compiled.run({"x0": few})["y0"], few * 1001)
        if len(devices) > 1:
            np.testing.assert_array_equal(compiled.run({"x0": many})["y0"], many * 1001)
        else:
            with pytest.raises(OutOfRange, match="test: input 'x0': 1099511627776 is not from"):
                compiled.run({"x0": many})


def test_constants_that_do_not_fit_go_elsewhere() -> None:
    with crosschip.compile(scaled(2**40), [Narrow(), "reference"], cache=False) as compiled:
        assert {d.device for d in compiled.placement.decisions if d.type == "MUL"} == {"reference"}
        made = compiled.run({"x0": np.array([3, -2])})["y0"]
    np.testing.assert_array_equal(made, np.array([3, -2]) * (2**40 + 1))


def test_saved_programs_are_converted_too() -> None:
    with crosschip.compile(scaled(10), [Narrow()], cache=False) as compiled:
        saved = compiled.to_bytes()
    with (
        Narrow() as device,
        crosschip.load_compiled(saved, devices=[device]) as loaded,
    ):
        np.testing.assert_array_equal(loaded.run({"x0": np.array([1, -2])})["y0"], [11, -22])
