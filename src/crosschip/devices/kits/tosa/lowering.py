"""Lowering of models to operations that TOSA expresses, with the channels of images last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Self

from crosschip.devices.kits.tflite.quantized import FuseQuantized
from crosschip.devices.kits.tflite.transposes import MoveTransposes
from crosschip.devices.kits.tosa.branches import SelectBranches
from crosschip.devices.kits.tosa.converters import converters
from crosschip.devices.kits.tosa.converters.table import quantized_operators, supports_quantized
from crosschip.hal import Capabilities, Sizing
from crosschip.hal.device import CompileError, single_operation_model
from crosschip.hal.support import YES, Offer, Rule, Support
from crosschip.ir import Builder, If, Model, ModelError, Operand, Operation, TensorType
from crosschip.ir.dataclass import dataclass
from crosschip.ir.frozen import set_field
from crosschip.lowering.decomposition import decompose
from crosschip.lowering.legalization import Target, legalize
from crosschip.ops import Operator
from crosschip.ops.standard.convolution import Conv2D, Conv2DTranspose, Conv3D
from crosschip.ops.standard.layout import Transpose
from crosschip.ops.standard.pooling import AveragePool2D, MaxPool2D
from crosschip.passes.base import Pass, run
from crosschip.passes.cancel_transposes import CancelTransposes
from crosschip.passes.fold_constants import FoldConstants
from crosschip.passes.remove_unused import RemoveUnused
from crosschip.passes.rewrite_operations import operations_for

MAX_RANK = 6
"""The largest number of axes in TOSA's level 8K."""


def supports(operation: Operation) -> Support:
    """Return whether an operation has a converter and all restrictions of that hold."""
    return YES if supports_quantized(operation) else converters.supports(operation)


TARGET = Target(
    name="TOSA",
    operators=converters.operators | quantized_operators(),
    capabilities=Capabilities(sizing=Sizing.FIXED, max_rank=MAX_RANK),
    supports=supports,
)
"""The standard operations that TOSA expresses."""


class ChannelsLast(Operation):
    """Standard operation on an image with its channels last.

    Attributes:
        operation: the operation, with this one's operands in place of those with channels second.
    """

    __slots__ = ("operation",)
    type = "tosa.CHANNELS_LAST"
    operation: Operator

    def __init__(self, name: str, operation: Operator) -> None:
        super().__init__(name, operation.inputs, operation.outputs)
        set_field(self, "operation", operation)

    def named_inputs(self) -> Iterator[tuple[str, Operand]]:
        return self.operation.named_inputs()

    def infer(self) -> tuple[TensorType, ...]:
        return tuple(output.type for output in self.outputs)

    def with_inputs(
        self, inputs: tuple[Operand | None, ...], outputs: tuple[Operand, ...] | None = None
    ) -> Self:
        outputs = self.outputs if outputs is None else outputs
        moved = self.operation.with_inputs(inputs, outputs)
        return type(self)(self.name, moved).standing_for(self)


@dataclass(frozen=True)
class MoveChannels(Pass):
    """Replaces operations on images by transpositions around the same on channels last."""

    exact = False

    def rewrite(self, model: Model) -> Model:
        used_names = {operation.name for operation in model.operations}
        operations: list[Operation] = []
        for operation in model.operations:
            operations += _moved(operation, used_names)
        return Model(model.name, model.inputs, operations, model.outputs)


def _moved(operation: Operation, used_names: set[str]) -> list[Operation]:
    images = isinstance(operation, Conv2D | Conv3D | Conv2DTranspose | MaxPool2D | AveragePool2D)
    if not images or len(operation.outputs) != 1:
        return [operation]
    assert isinstance(operation, Operator), "these are operators"
    builder = Builder(prefix=f"{operation.name}.", used_names=used_names)
    image, *others = operation.inputs
    (output,) = operation.outputs
    rank = len(output.type.shape or ())
    last, first = (0, *range(2, rank), 1), (0, rank - 1, *range(1, rank - 1))
    moved_image = builder.add(Transpose, image, last)
    type_ = output.type
    shape = tuple((type_.shape or ())[axis] for axis in last)
    moved_output = Operand(f"{output.name}.last", replace(type_, shape=shape))
    moved = operation.with_inputs((moved_image, *others), (moved_output,))
    builder.append(ChannelsLast(builder.unique_name("channels_last"), moved))
    result = builder.add(Transpose, moved_output, first)
    parts = operations_for(operation.outputs, (result,), builder)
    return [part.standing_for(operation) for part in parts]


_PASSES: tuple[Pass, ...] = (
    FoldConstants(),
    MoveChannels(),
    MoveTransposes(),
    CancelTransposes(),
    RemoveUnused(),
)


def query(model: Model) -> Offer:
    """Return whether TOSA expresses each operation of a model, with the reason if not.

    Operations that are decomposed into such that TOSA has are supported, and so are branches of
    such.
    """
    pairs = zip(model.operations, TARGET.query(model).answers, strict=True)
    return Offer([answer or _answer_for_parts(operation, answer) for operation, answer in pairs])


def _answer_for_parts(operation: Operation, answer: Support) -> Support:
    """Return the answer about the parts of an operation that TOSA does not have as a whole."""
    if isinstance(operation, If):
        try:
            legalize(SelectBranches()(single_operation_model(operation)), TARGET)
        except CompileError as error:
            return Support.no(operation, "", str(error), Rule.OPERATOR)
        return YES
    is_empty = any(0 in (output.type.shape or ()) for output in operation.outputs)
    if not isinstance(operation, Operator) or is_empty or _has_computed_parameter(operation):
        return answer
    try:
        parts = decompose(operation, TARGET.query, set())
    except (ModelError, ValueError):
        # Sizes that the runtime assumes of dynamic ones contradict each other; it asks again.
        return YES
    return answer if parts is None else YES


def _has_computed_parameter(operation: Operator) -> bool:
    return any(slot.parameter and not operand.is_constant for slot, operand in operation.filled())


def lower(model: Model) -> Model:
    """Rewrite a model into operations that are written one by one.

    Raises:
        CompileError: TOSA does not express operations; the message has the reasons.
    """
    model = run(model, (SelectBranches(), FuseQuantized(supports)))
    return run(legalize(model, TARGET), _PASSES)
