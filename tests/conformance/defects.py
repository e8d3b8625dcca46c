"""Copies of the reference device with one thing wrong each, which the kit must find.

`tests.conformance.defects:dilations_ignored` is a device like any other.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from crosschip.devices.reference import ReferenceDevice, ReferenceProgram
from crosschip.hal import Device, Options, Program, Support
from crosschip.ir import Array, Model, Operand, Operation
from crosschip.ops import Operator

Reference = Callable[..., Any]


@dataclass(frozen=True)
class Defect:
    """A planted defect, in an operation, in its program or in the device.

    Attributes:
        operator: where the kit must find it; `DEVICE` if it is not in an operator.
        wrong: an operation with the defect in place of a right one.
        program: the program that runs the model.
        device: the class of the device, if the defect is in the device itself.
    """

    operator: str
    wrong: Callable[[Operator], Operator] = lambda operation: operation
    program: type[ReferenceProgram] = ReferenceProgram
    device: type[Device] | None = None


def ignoring(slot: str) -> Callable[[Operator], Operator]:
    """Take a parameter's default whatever the model says."""

    def wrong(operation: Operator) -> Operator:
        (index,) = (each.index for each in operation.slots if each.name == slot)
        inputs = list(operation.inputs)
        inputs[index] = None
        return _like(operation, type(operation), tuple(inputs))

    return wrong


def changing(slot: str, change: Callable[[Any], Any]) -> Callable[[Operator], Operator]:
    """Take another value for a parameter that the model gives."""

    def wrong(operation: Operator) -> Operator:
        (index,) = (each.index for each in operation.slots if each.name == slot)
        inputs = list(operation.inputs)
        operand = inputs[index]
        if operand is None or operand.value is None:
            return operation
        value = np.asarray(change(operand.value), operand.value.dtype)
        inputs[index] = Operand(operand.name, operand.type, value.reshape(operand.value.shape))
        return _like(operation, type(operation), tuple(inputs))

    return wrong


def computing(
    reference: Callable[[Any, Reference], Reference],
) -> Callable[[Operator], Operator]:
    """Compute something else, made from the operation and its right reference."""

    def wrong(operation: Operator) -> Operator:
        right = type(operation).reference

        def compute(self: Operator, **tensors: Any) -> Any:
            return reference(self, lambda **given: right(self, **given))(**tensors)

        kind = type(type(operation).__name__, (type(operation),), {"reference": compute})
        return _like(operation, kind, operation.inputs)

    return wrong


def _like(
    operation: Operator, kind: type[Operator], inputs: tuple[Operand | None, ...]
) -> Operator:
    return kind(operation.name, inputs, operation.outputs)


class DefectiveDevice(ReferenceDevice):
    """The reference device with a defect."""

    defect: ClassVar[Defect]

    def compile(self, model: Model, options: Options) -> Program:
        operations = [
            self.defect.wrong(operation)
            if isinstance(operation, Operator) and operation.type == self.defect.operator
            else operation
            for operation in model.operations
        ]
        wrong = Model(model.name, model.inputs, operations, model.outputs)
        return self.defect.program(wrong)

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        super().load(saved, model, options)
        return self.compile(model, options)


class Widened(ReferenceProgram):
    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        outputs = super().run(inputs)
        return [o.astype(np.float32) if o.dtype == np.float16 else o for o in outputs]


class Overwriting(ReferenceProgram):
    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        outputs = super().run(inputs)
        for array in inputs:
            if array.flags.writeable:
                array[...] = 0
        return outputs


class Racing(ReferenceProgram):
    """Keeps the inputs of the run at hand where the next run finds them."""

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        self._at_hand = inputs
        time.sleep(0.001)
        return super().run(self._at_hand)


class OneBuffer(ReferenceProgram):
    """Hands out the same arrays in every run."""

    _mine: Sequence[Array] | None = None

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        outputs = super().run(inputs)
        if self._mine is None or any(
            mine.shape != made.shape for mine, made in zip(self._mine, outputs, strict=True)
        ):
            self._mine = outputs
        for mine, made in zip(self._mine, outputs, strict=True):
            mine[...] = made
        return self._mine


class Transposing(ReferenceProgram):
    """Hands out arrays that are not C-contiguous."""

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        return [np.asfortranarray(output) for output in super().run(inputs)]


class LosingAnOutput(ReferenceProgram):
    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        return list(super().run(inputs))[:1]


class Hanging(ReferenceProgram):
    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        threading.Event().wait()
        return []


class Crashing(ReferenceProgram):
    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        print("the bus does not answer", file=sys.stderr, flush=True)
        os.abort()


class StaleDevice(ReferenceDevice):
    """Loads whatever it saved first."""

    _first: bytes | None = None

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        StaleDevice._first = StaleDevice._first or saved
        return super().load(StaleDevice._first, model, options)


class SilentDevice(ReferenceDevice):
    """Says no to one operator, and not why."""

    def supports(self, operation: Operation, options: Options) -> Support:
        return Support(False) if operation.type == "TANH" else super().supports(operation, options)


class TolerantDevice(ReferenceDevice):
    """Takes any property."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        super().__init__()


class ClosingDevice(ReferenceDevice):
    """Closing one instance closes all."""

    _closed = False

    class Tied(ReferenceProgram):
        def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
            if ClosingDevice._closed:
                raise RuntimeError("the driver is closed")
            return super().run(inputs)

    def compile(self, model: Model, options: Options) -> Program:
        return self.Tied(model)

    def close(self) -> None:
        ClosingDevice._closed = True


def _away_from_zero(self: Any, right: Reference) -> Reference:
    return lambda input: np.sign(input) * np.floor(np.abs(input) + 0.5)


def _ties_to_the_last(self: Any, right: Reference) -> Reference:
    def reference(input: Array) -> Any:
        flipped = right(input=np.flip(input, self.axis))
        return input.shape[self.axis] - 1 - flipped

    return reference


def _integers_rounded(self: Any, right: Reference) -> Reference:
    return lambda input: right(input=np.rint(input) if input.dtype.kind == "f" else input)


def _floor_division(self: Any, right: Reference) -> Reference:
    def reference(input0: Array, input1: Array) -> Any:
        if input0.dtype.kind != "i":
            return right(input0=input0, input1=input1)
        return np.where(input1 == 0, 0, input0 // np.where(input1 == 0, 1, input1))

    return reference


def _scaled(factor: float) -> Callable[[Any, Reference], Reference]:
    def changed(self: Any, right: Reference) -> Reference:
        return lambda **tensors: right(**tensors) * np.float32(factor)

    return changed


def _saturated(self: Any, right: Reference) -> Reference:
    return lambda **tensors: np.minimum(right(**tensors), 5)


DEFECTS: dict[str, Defect] = {
    "ties_rounded_away": Defect("ROUND", computing(_away_from_zero)),
    "pads_swapped": Defect("CONV_2D", changing("pads", lambda pads: pads[[2, 3, 0, 1]])),
    "dilations_ignored": Defect("CONV_2D", ignoring("dilations")),
    "group_ignored": Defect("CONV_2D", ignoring("bias")),
    "axis_off_by_one": Defect("SOFTMAX", changing("axis", lambda axis: axis - 1)),
    "cast_rounds": Defect("CAST", computing(_integers_rounded)),
    "type_widened": Defect("ADD", program=Widened),
    "ties_to_the_last": Defect("ARG_MAX", computing(_ties_to_the_last)),
    "input_overwritten": Defect("RELU", program=Overwriting),
    "ceil_mode_ignored": Defect("MAX_POOL_2D", ignoring("ceil_mode")),
    "padding_not_counted": Defect("AVERAGE_POOL_2D", ignoring("count_include_pad")),
    "axis_ignored": Defect("GATHER", ignoring("axis")),
    "order_reversed": Defect(
        "CONCAT",
        computing(lambda self, right: lambda parts: right(parts=parts[::-1])),
    ),
    "permutation_inverted": Defect("TRANSPOSE", changing("perm", np.argsort)),
    "upper_bound_ignored": Defect("CLIP", ignoring("max")),
    "slope_ignored": Defect("LEAKY_RELU", ignoring("alpha")),
    "shift_ignored": Defect("HARD_SIGMOID", ignoring("beta")),
    "epsilon_ignored": Defect("BATCH_NORMALIZATION", changing("epsilon", lambda e: e * 0)),
    "variance_unbiased": Defect("LAYER_NORMALIZATION", computing(_scaled(0.99))),
    "reflect_is_edge": Defect("PAD", changing("mode", lambda mode: np.where(mode == 2, 3, mode))),
    "corners_ignored": Defect("RESIZE_LINEAR", ignoring("align_corners")),
    "transposition_ignored": Defect("MAT_MUL", ignoring("transpose_y")),
    "exclusive_ignored": Defect("CUM_SUM", ignoring("exclusive")),
    "negative_base": Defect(
        "POW",
        computing(
            lambda self, right: lambda input0, input1: right(input0=np.abs(input0), input1=input1)
        ),
    ),
    "saturates": Defect("EXP", computing(_saturated)),
    "floor_division": Defect("DIV", computing(_floor_division)),
    "zero_point_ignored": Defect(
        "QUANTIZE", changing("zero_point", lambda points: np.zeros_like(points))
    ),
    "largest_ignored": Defect("TOP_K", ignoring("largest")),
    "equal_counts_as_less": Defect(
        "LESS", computing(lambda self, right: lambda input0, input1: np.less_equal(input0, input1))
    ),
    "one_output": Defect("SPLIT", program=LosingAnOutput),
    "fortran_order": Defect("MUL", program=Transposing),
    "bfloat16_accuracy": Defect("SQRT", computing(_scaled(1.004))),
    "hang": Defect("SIGMOID", program=Hanging),
    "crash": Defect("COS", program=Crashing),
    "race": Defect("DEVICE", program=Racing),
    "one_buffer": Defect("DEVICE", program=OneBuffer),
    "stale_program": Defect("DEVICE", device=StaleDevice),
    "silence": Defect("TANH", device=SilentDevice),
    "any_property": Defect("DEVICE", device=TolerantDevice),
    "closing_closes_all": Defect("DEVICE", device=ClosingDevice),
}


def __getattr__(name: str) -> type[Device]:
    """The device with the defect of that name."""
    if name not in DEFECTS:
        raise AttributeError(name)
    defect = DEFECTS[name]
    if defect.device is not None:
        return defect.device
    found: type[Device] = type(name, (_limited(defect), DefectiveDevice), {"defect": defect})
    return found


def _limited(defect: Defect) -> type:
    """A mixin that keeps a defective program to the operator that it is about."""

    class Limited:
        def compile(self, model: Model, options: Options) -> Program:
            device_info = any(operation.type == defect.operator for operation in model.operations)
            if device_info or defect.operator == "DEVICE":
                return DefectiveDevice.compile(self, model, options)  # type: ignore[arg-type]
            return ReferenceProgram(model)

    return Limited
