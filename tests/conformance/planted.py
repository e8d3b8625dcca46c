"""Copies of the reference device that err only where two or three conditions meet.

Each computes what is right and then spoils it, or takes back a refusal, if its condition holds of
the operation, the arrays that fill its slots, and what the program did before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crosschip.devices.reference import ReferenceDevice, ReferenceProgram
from crosschip.hal import Options, Program
from crosschip.ir import Array, DeviceError, Model
from crosschip.ops import Operator
from crosschip.ops.definition.slots import Fuse, Parameter


@dataclass
class Seen:
    """One run of a program, as a fault sees it.

    Attributes:
        operation: the model's one operation.
        arrays: what fills its slots that one tensor fills.
        outputs: what is right; empty if the reference refuses the run.
        earlier: what the program made in each earlier run.
        open: whether the model leaves sizes open.
        loaded: whether the program was loaded.
    """

    operation: Operator
    arrays: dict[str, Array]
    outputs: list[Array]
    earlier: list[list[Array]] = field(default_factory=list)
    open: bool = False
    loaded: bool = False

    def __getattr__(self, name: str) -> Any:
        """A parameter's value, or a tensor's array; `None` where it is left out."""
        slot = next((each for each in self.operation.slots if each.name == name), None)
        if slot is None:
            raise AttributeError(name)
        array = self.arrays.get(name)
        if not isinstance(slot, Parameter):
            return array
        return slot.default if array is None else slot.decode(array)

    def is_computed(self, name: str) -> bool:
        """Tell whether a parameter is known only as the model runs."""
        operand = self.operation.operand(name)
        return operand is not None and operand.value is None


Spoil = Callable[[Seen], list[Array]]


@dataclass(frozen=True)
class Fault:
    """A fault: where it is, when, and the wrong outputs.

    Attributes:
        operator: the operator that is computed wrongly.
        when: the condition.
        spoil: makes the wrong outputs.
    """

    operator: str
    when: Callable[[Seen], bool]
    spoil: Spoil


def off_by_one(seen: Seen) -> list[Array]:
    """The last element of the first output is another one."""
    first, *others = seen.outputs
    wrong = first.copy()
    if wrong.size:
        last = wrong.reshape(-1)
        last[-1] = ~last[-1] if wrong.dtype == bool else last[-1] + wrong.dtype.type(3)
    return [wrong, *others]


def without_nan(seen: Seen) -> list[Array]:
    """0 in the place of NaN."""
    return [
        np.nan_to_num(output, nan=0.0, posinf=np.inf, neginf=-np.inf) for output in seen.outputs
    ]


def cut_short(seen: Seen) -> list[Array]:
    """The first output without its last axis."""
    first, *others = seen.outputs
    return [
        np.ascontiguousarray(first.reshape((*first.shape, 1)[: max(1, first.ndim)])[..., :0]),
        *others,
    ]


def zeros(seen: Seen) -> list[Array]:
    """Zeros."""
    return [np.zeros_like(output) for output in seen.outputs]


FAULTS: dict[str, Fault] = {
    "stride_and_uneven_pads": Fault(
        "CONV_2D",
        lambda s: max(s.strides) >= 2 and s.auto_pad == 0 and s.pads[0] != s.pads[1],
        off_by_one,
    ),
    "dilation_and_groups": Fault(
        "CONV_2D", lambda s: max(s.dilations) == 2 and s.group > 1, off_by_one
    ),
    "one_channel_and_wide_stride": Fault(
        "CONV_2D",
        lambda s: s.strides[1] >= 3 and s.input.shape[1] == 1 and s.filter.shape[3] > 1,
        off_by_one,
    ),
    "empty_batch_and_fused": Fault(
        "FULLY_CONNECTED",
        lambda s: 0 in s.input.shape and s.fuse_code is not Fuse.NONE,
        lambda s: [np.zeros((1, *s.outputs[0].shape[1:]), s.outputs[0].dtype)],
    ),
    "negative_axis_without_keepdim": Fault(
        "REDUCE_MEAN",
        lambda s: bool(s.axes) and min(s.axes) < 0 and not s.keepdim and s.input.ndim == 3,
        off_by_one,
    ),
    "quantized_and_odd": Fault(
        "ADD",
        lambda s: (
            s.operation.outputs[0].type.quantization is not None and s.outputs[0].size % 2 == 1
        ),
        off_by_one,
    ),
    "larger_in_a_later_run": Fault(
        "MUL",
        lambda s: bool(s.earlier) and s.outputs[0].size > max(e[0].size for e in s.earlier),
        off_by_one,
    ),
    "nan_in_the_last_place": Fault(
        "MAX",
        lambda s: (
            s.outputs[0].dtype.kind == "f"
            and s.outputs[0].size > 1
            and bool(np.isnan(s.outputs[0].reshape(-1)[-1:]).any())
        ),
        without_nan,
    ),
    "negative_index_on_a_later_axis": Fault(
        "GATHER", lambda s: bool((s.indices < 0).any()) and s.axis % s.input.ndim > 0, off_by_one
    ),
    "transposed_by_a_vector": Fault(
        "MAT_MUL", lambda s: s.transpose_y and s.x.ndim == 1, off_by_one
    ),
    "half_and_more_than_eight": Fault(
        "SIGMOID",
        lambda s: s.input.dtype == np.float16 and s.input.ndim > 0 and s.input.shape[-1] > 8,
        off_by_one,
    ),
    "computed_at_rank_3": Fault(
        "SLICE", lambda s: s.is_computed("starts") and s.input.ndim == 3, off_by_one
    ),
    "reflected_on_two_axes": Fault(
        "PAD",
        lambda s: s.mode == 2 and sum(map(any, zip(s.pads[::2], s.pads[1::2], strict=True))) > 1,
        off_by_one,
    ),
    "corners_of_a_smaller_image": Fault(
        "RESIZE_NEAREST",
        lambda s: s.align_corners and s.outputs[0].shape[2] < s.input.shape[2],
        off_by_one,
    ),
    "least_of_an_inner_axis": Fault(
        "TOP_K", lambda s: not s.largest and s.axis % s.input.ndim < s.input.ndim - 1, off_by_one
    ),
    "exclusive_and_backwards": Fault(
        "CUM_SUM", lambda s: s.exclusive and s.reverse and s.input.ndim > 1, off_by_one
    ),
    "indices_rounded_up_with_padding": Fault(
        "MAX_POOL_2D",
        lambda s: s.return_indices and s.ceil_mode and any(s.pads),
        lambda s: [s.outputs[0], s.outputs[1] + s.outputs[1].dtype.type(1)],
    ),
    "loaded_at_rank_4": Fault(
        "TRANSPOSE", lambda s: s.loaded and s.input.ndim >= 4 and s.input.size > 0, zeros
    ),
    "both_directions_of_unequal_lengths": Fault(
        "LSTM", lambda s: s.direction == 2 and s.sequence_lengths is not None, off_by_one
    ),
    "repeated_places_are_added_once": Fault(
        "SCATTER_ND",
        lambda s: (
            s.reduction != 0
            and s.indices.size > 1
            and len(np.unique(s.indices.reshape(-1, s.indices.shape[-1]), axis=0))
            < s.indices.reshape(-1, s.indices.shape[-1]).shape[0]
        ),
        off_by_one,
    ),
}
"""The faults, two or three conditions each."""


def _clipped(slot: str, axis: Callable[[Seen], int]) -> Spoil:
    """The fault of moving indices into the range without a word."""

    def spoil(seen: Seen) -> list[Array]:
        size = seen.input.shape[axis(seen)]
        inputs = {**seen.arrays, slot: np.clip(seen.arrays[slot], 0, max(0, size - 1))}
        return _computed(seen.operation, inputs)

    return spoil


def _computed(operation: Operator, arrays: dict[str, Array]) -> list[Array]:
    filled = [None if o is None else o.value for o in operation.inputs]
    for slot, _ in operation.filled():
        if not slot.variadic:
            filled[slot.index] = arrays[slot.name]
    return [np.ascontiguousarray(output) for output in operation.kernel()(filled)]


def _refused(seen: Seen) -> bool:
    return not seen.outputs


def _of_declared_shape(seen: Seen) -> list[Array]:
    """Empty arrays of the rank that is declared."""
    return [
        np.zeros((0,) * len(o.type.shape or ()), o.type.element_type.dtype)
        for o in seen.operation.outputs
    ]


UNCHECKED: dict[str, Fault] = {
    "gather_never_checks": Fault("GATHER", _refused, _clipped("indices", lambda s: s.axis)),
    "gather_nd_never_checks": Fault("GATHER_ND", _refused, _of_declared_shape),
    "scatter_nd_never_checks": Fault("SCATTER_ND", _refused, lambda s: [s.input.copy()]),
    "scatter_elements_never_checks": Fault(
        "SCATTER_ELEMENTS", _refused, lambda s: [s.input.copy()]
    ),
    "arg_max_of_nothing": Fault("ARG_MAX", _refused, _of_declared_shape),
    "range_without_a_step": Fault("RANGE", _refused, _of_declared_shape),
    "range_the_wrong_way": Fault(
        "RANGE",
        lambda s: (
            bool(s.outputs)
            and (s.end.item() - s.start.item()) * s.step.item() < 0
            and s.start.item() != s.end.item()
        ),
        lambda s: [np.arange(3).astype(s.outputs[0].dtype)],
    ),
    "reshape_that_does_not_fit": Fault("RESHAPE", _refused, _of_declared_shape),
    "expand_that_does_not_fit": Fault("EXPAND", _refused, _of_declared_shape),
    "convolution_that_does_not_fit": Fault("CONV_2D", _refused, _of_declared_shape),
    "assert_never_checks": Fault(
        "ASSERT", _refused, lambda s: [array.copy() for array in s.arrays["data"]]
    ),
    "relu_of_nan": Fault("RELU", lambda s: bool(s.outputs), without_nan),
    "clip_of_nan": Fault("CLIP", lambda s: bool(s.outputs), without_nan),
    "reduce_max_of_nan": Fault("REDUCE_MAX", lambda s: bool(s.outputs), without_nan),
    "top_k_of_nan": Fault("TOP_K", lambda s: bool(s.outputs), without_nan),
    "average_pool_of_an_empty_batch": Fault(
        "AVERAGE_POOL_2D", lambda s: bool(s.outputs) and s.input.shape[0] == 0, cut_short
    ),
    "product_of_two_vectors": Fault(
        "MAT_MUL", lambda s: bool(s.outputs) and s.x.ndim == s.y.ndim == 1, off_by_one
    ),
    "indices_and_relu6": Fault(
        "MAX_POOL_2D",
        lambda s: bool(s.outputs) and s.return_indices and s.fuse_code is Fuse.RELU6,
        lambda s: [s.outputs[0], np.clip(s.outputs[1], 0, 6)],
    ),
    "other_sizes": Fault(
        "ADD",
        lambda s: bool(s.outputs and s.earlier) and s.outputs[0].size != s.earlier[0][0].size,
        cut_short,
    ),
    "the_previous_output": Fault(
        "SUB",
        lambda s: bool(s.outputs and s.earlier) and s.earlier[-1][0].shape == s.outputs[0].shape,
        lambda s: [array.copy() for array in s.earlier[-1]],
    ),
}
"""The faults of engines that check nothing, and others that were seen."""


class Planted(ReferenceProgram):
    """A program with a fault."""

    fault: Fault
    loaded = False

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._earlier: list[list[Array]] = []

    def run(self, inputs: Sequence[Array]) -> Sequence[Array]:
        error: DeviceError | None = None
        outputs: list[Array] = []
        try:
            outputs = list(super().run(inputs))
        except DeviceError as refusal:
            error = refusal
        seen = self._seen(inputs, outputs)
        if error is not None:
            if self.fault.when(seen) and self.fault in UNCHECKED.values():
                return self.fault.spoil(seen)
            raise error
        wrong = self.fault.when(seen)
        made = self.fault.spoil(seen) if wrong else outputs
        self._earlier.append([output.copy() for output in outputs])
        return made

    def _seen(self, inputs: Sequence[Array], outputs: list[Array]) -> Seen:
        (operation,) = self._model.operations
        assert isinstance(operation, Operator)
        known = dict(zip(self._model.inputs.values(), inputs, strict=True))
        arrays: dict[str, Any] = {}
        for slot, operand in operation.filled():
            array = known[operand] if operand.value is None else operand.value
            if slot.variadic:
                arrays.setdefault(slot.name, []).append(array)
            else:
                arrays[slot.name] = array
        is_open = any(o.type.static_shape is None for o in self._model.inputs.values())
        return Seen(operation, arrays, outputs, self._earlier, is_open, self.loaded)


class PlantedDevice(ReferenceDevice):
    """The reference device with a fault in one operator."""

    fault: Fault

    def compile(self, model: Model, options: Options) -> Program:
        types = [operation.type for operation in model.operations]
        if types != [self.fault.operator]:
            return ReferenceProgram(model)
        program = type("Program", (Planted,), {"fault": self.fault})(model)
        assert isinstance(program, Program)
        return program

    def load(self, saved: bytes, model: Model, options: Options) -> Program:
        program = self.compile(model, options)
        if isinstance(program, Planted):
            program.loaded = True
        return program


def device(fault: Fault) -> PlantedDevice:
    """A device with a fault."""
    made: PlantedDevice = type("Device", (PlantedDevice,), {"fault": fault})()
    return made
