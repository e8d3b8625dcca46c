"""Fusion of activations with the operators before them."""

from __future__ import annotations

from crosschip.devices.kits.tflite.native import Native
from crosschip.ir import Model
from crosschip.ir.dataclass import dataclass
from crosschip.passes.base import Pass
from crosschip.passes.rewriter import Rewriter

_ACTIVATIONS = {"RELU": "RELU", "RELU6": "RELU6", "RELU_N1_TO_1": "RELU_N1_TO_1"}
_FUSING = frozenset(
    {
        *("ADD", "SUB", "MUL", "DIV", "CONV_2D", "DEPTHWISE_CONV_2D", "TRANSPOSE_CONV"),
        *("FULLY_CONNECTED", "AVERAGE_POOL_2D", "MAX_POOL_2D"),
    }
)
"""The operators whose kernels apply `fused_activation_function`, of the type that they fuse."""


@dataclass(frozen=True)
class FuseActivations(Pass):
    """Sets an activation as an option of the operator whose output only it reads.

    The addition of a vector to a product with a matrix becomes its bias.
    """

    exact = False

    def rewrite(self, model: Model) -> Model:
        rewriter = Rewriter(model)
        for original in model.operations:
            operation = rewriter.resolved(original)
            if isinstance(operation, Native):
                operation = _with_bias(operation, rewriter)
                operation = _with_activation(operation, rewriter)
            rewriter.keep(operation)
        return rewriter.finish()


def _with_activation(operation: Native, rewriter: Rewriter) -> Native:
    """Return the operator before an activation with it, or the operation itself."""
    source = operation.inputs[0]
    if operation.code not in _ACTIVATIONS or source is None or not rewriter.used_once(source):
        return operation
    producer = rewriter.producer(source)
    if (
        not isinstance(producer, Native)
        or producer.code not in _FUSING
        or "fused_activation_function" in producer.options
        or source.type.quantization != operation.outputs[0].type.quantization
        or source.type.element_type is not operation.outputs[0].type.element_type
    ):
        return operation
    rewriter.withdraw(producer)
    fused = producer.with_options(fused_activation_function=_ACTIVATIONS[operation.code])
    return fused.with_outputs(operation.outputs).standing_for(producer, operation)


def _with_bias(operation: Native, rewriter: Rewriter) -> Native:
    """Return a product with a matrix with the vector that is added, or the operation itself."""
    if operation.code != "ADD":
        return operation
    for source, bias in (operation.inputs, operation.inputs[::-1]):
        if source is None or bias is None or bias.content is None:
            continue
        producer = rewriter.producer(source)
        if (
            isinstance(producer, Native)
            and producer.code == "FULLY_CONNECTED"
            and producer.inputs[2] is None
            and "fused_activation_function" not in producer.options
            and source.type.quantization is None
            and bias.type.shape == (source.type.shape or ())[-1:]
            and source.type.shape == operation.outputs[0].type.shape
            and rewriter.used_once(source)
        ):
            rewriter.withdraw(producer)
            fused = producer.with_inputs((*producer.inputs[:2], bias), operation.outputs)
            return fused.standing_for(producer, operation)
    return operation
