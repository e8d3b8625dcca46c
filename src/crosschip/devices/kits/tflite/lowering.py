"""Lowering of models to operators of TensorFlow Lite."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from crosschip.devices.kits.tflite.activation import FuseActivations
from crosschip.devices.kits.tflite.converters import converters, images
from crosschip.devices.kits.tflite.half import ComputeInFloat32
from crosschip.devices.kits.tflite.means import FuseStoredMeans
from crosschip.devices.kits.tflite.native import Graph
from crosschip.devices.kits.tflite.quantized import FuseQuantized, RealConstants, SignedBytes
from crosschip.devices.kits.tflite.shuffles import RecognizeShuffles
from crosschip.devices.kits.tflite.transforms import ExpandMagnitudes, RecognizeTransforms
from crosschip.devices.kits.tflite.transposes import MoveTransposes
from crosschip.hal import YES, Capabilities, CompileError, Rule, Sizing, Support
from crosschip.hal.converters import Converters
from crosschip.ir import ElementType, If, Model, Operand, Operation
from crosschip.ir.dataclass import dataclass
from crosschip.ir.types import INTEGERS
from crosschip.lowering.legalization import Target, legalize
from crosschip.ops import Operator
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.standard.activation import Relu, Relu6
from crosschip.ops.standard.arithmetic import Clip, Max, Min
from crosschip.ops.standard.layout import Reshape
from crosschip.passes.base import Pass, run
from crosschip.passes.cancel_transposes import CancelTransposes
from crosschip.passes.fold_constants import FoldConstants
from crosschip.passes.remove_unused import RemoveUnused
from crosschip.passes.rewrite_operations import operations_for


def supports(operation: Operation) -> Support:
    """Return whether an operation has a converter and all restrictions of that hold."""
    if isinstance(operation, If):
        return supports_branches(operation, TARGET)
    for slot, operand in operation.named_inputs():
        if operand.type.static_shape is None:
            return Support.no(operation, slot, "its sizes must be known", Rule.SHAPE)
    table = images if operation.type in images.operators else converters
    is_word = operation.outputs[0].type.element_type is ElementType.INT16
    if is_word and isinstance(operation, Operator) and operation.fused is Fuse.RELU1:
        return Support.no(operation, "fuse_code", "RELU1 of int16 has no kernel", Rule.FUSION)
    return table.supports(operation)


def supports_branches(operation: If, target: Target) -> Support:
    """Return whether both bodies can be lowered for a target."""
    for role, body in zip(operation.roles, operation.bodies, strict=True):
        try:
            lower(body, target)
        except CompileError as error:
            return Support.no(operation, role, str(error), Rule.OPERATOR)
    return YES


TARGET = Target(
    name="TensorFlow Lite",
    operators=images.operators | converters.operators | {If.type},
    capabilities=Capabilities(sizing=Sizing.FIXED),
    supports=supports,
)
"""The standard operators that TensorFlow Lite expresses."""


@dataclass(frozen=True)
class Convert(Pass):
    """Replaces standard operations that a table has converters for.

    Args:
        table: the converters.
    """

    exact = False

    table: Converters[Graph, Operand]

    def rewrite(self, model: Model) -> Model:
        used_names = {operation.name for operation in model.operations}
        operations: list[Operation] = []
        pending = list(reversed(model.operations))
        while pending:
            operation = pending.pop()
            if operation.type not in self.table.operators:
                operations.append(operation)
                continue
            graph = Graph(prefix=f"{operation.name}.", used_names=used_names)
            results = _with_activation(graph, operation, self.table.convert(graph, operation))
            parts = operations_for(operation.outputs, results, graph)
            pending += [part.standing_for(operation) for part in reversed(parts)]
        return Model(model.name, model.inputs, operations, model.outputs)


def _with_activation(
    g: Graph, operation: Operation, results: Sequence[Operand]
) -> Sequence[Operand]:
    """Return the outputs of an operation after the activation that is fused with it."""
    fuse = operation.fused if isinstance(operation, Operator) else Fuse.NONE
    if fuse is Fuse.NONE:
        return results
    first, *others = results
    quantization = operation.outputs[0].type.quantization
    if quantization is None and first.type.element_type in INTEGERS:
        return [_clipped(g, first, *fuse.bounds), *others]
    if fuse is Fuse.RELU1:
        return [g.add(Clip, first, *fuse.bounds, quantization=quantization), *others]
    operator = Relu if fuse is Fuse.RELU else Relu6
    return [g.add(operator, first, quantization=quantization), *others]


def _clipped(g: Graph, integers: Operand, least: float, greatest: float) -> Operand:
    """Return integers in a range; activations are kernels of reals alone."""
    dtype = integers.type.element_type.dtype
    result = g.add(Max, integers, np.array(least, dtype))
    return result if np.isinf(greatest) else g.add(Min, result, np.array(greatest, dtype))


@dataclass(frozen=True)
class ConvertBranches(Pass):
    """Replaces choices between bodies by `IF`, with subgraphs.

    Args:
        target: the operations that the engine runs.
    """

    exact = False

    target: Target

    def rewrite(self, model: Model) -> Model:
        used_names = {operation.name for operation in model.operations}
        operations: list[Operation] = []
        for operation in model.operations:
            if not isinstance(operation, If):
                operations.append(operation)
                continue
            graph = Graph(prefix=f"{operation.name}.", used_names=used_names)
            condition = operation.condition
            if condition.type.shape != ():
                condition = graph.add(Reshape, condition, ())
            results = graph.natives(
                "IF",
                [condition, *operation.captures],
                [output.type for output in operation.outputs],
                [lower(body, self.target) for body in operation.bodies],
                then_subgraph_index=0,
                else_subgraph_index=1,
            )
            parts = operations_for(operation.outputs, results, graph)
            operations += [part.standing_for(operation) for part in parts]
        return Model(model.name, model.inputs, operations, model.outputs)


def _before(target: Target) -> tuple[Pass, ...]:
    """Return the passes to standard operations in the types of TensorFlow Lite's kernels."""
    return (
        RecognizeShuffles(),
        ComputeInFloat32(),
        FuseStoredMeans(),
        ExpandMagnitudes(),
        SignedBytes(),
        FuseQuantized(target.supports),
    )


def _after(target: Target) -> tuple[Pass, ...]:
    """Return the passes from supported standard operations to operators of TensorFlow Lite."""
    return (
        RealConstants(),
        FoldConstants(),
        ConvertBranches(target),
        RecognizeTransforms(),
        Convert(images),
        MoveTransposes(),
        CancelTransposes(),
        Convert(converters),
        FuseActivations(),
        RemoveUnused(),
    )


def lower(model: Model, target: Target = TARGET) -> Model:
    """Rewrite a model into `Native` operations alone.

    Args:
        model: the model.
        target: the operations that the engine runs, a part of those that `TARGET` has.

    Raises:
        CompileError: operations have no form in TensorFlow Lite; the message has the reasons.
    """
    return run(legalize(run(model, _before(target)), target), _after(target))
