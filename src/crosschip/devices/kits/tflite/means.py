"""Means of quantized windows that are computed of the stored integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from crosschip.ir import Arithmetic, Model, Operand, Operation, Quantization
from crosschip.ir.dataclass import dataclass
from crosschip.ops import Operator
from crosschip.ops.standard.layout import Transpose
from crosschip.ops.standard.pooling import AveragePool2D
from crosschip.ops.standard.quantization import Reinterpret
from crosschip.passes.base import Pass
from crosschip.passes.rewriter import Rewriter

_LEAST_SCALE = 1 - 2**-15


@dataclass(frozen=True)
class FuseStoredMeans(Pass):
    """Replaces a mean of stored integers, between reinterpretations, by one in fixed point.

    Models read from TensorFlow Lite take means of integers with a scale of 1, so that all devices
    round halves away from zero, as TensorFlow Lite's kernel does. Transpositions may lie between.
    """

    exact = False

    def rewrite(self, model: Model) -> Model:
        rewriter = Rewriter(model)
        for original in model.operations:
            operation = rewriter.resolved(original)
            chain = _chain(operation, rewriter)
            if not chain:
                rewriter.keep(operation)
                continue
            first, *inner, _ = chain
            for part in inner:
                rewriter.withdraw(part)
            parts = _quantized(first.inputs[0], inner)
            for part in parts:
                rewriter.keep(part)
            rewriter.replace(original.outputs[0], parts[-1].outputs[0])
        return rewriter.finish()


def _chain(last: Operation, rewriter: Rewriter) -> Sequence[Operation]:
    """Return a mean with the operations before it, up to a reinterpretation as the last one."""
    if not isinstance(last, Reinterpret):
        return ()
    chain: list[Operation] = [last]
    while True:
        source = chain[0].inputs[0]
        assert source is not None, "it is required"
        operation = rewriter.producer(source)
        if not isinstance(operation, AveragePool2D | Transpose | Reinterpret):
            return ()
        chain.insert(0, operation)
        if isinstance(operation, Reinterpret):
            break
        if not rewriter.used_once(source):
            return ()
    means = [each for each in chain if isinstance(each, AveragePool2D)]
    input_quantization, stored = (
        o.type.quantization for o in (chain[0].inputs[0], chain[0].outputs[0]) if o
    )
    if (
        len(means) != 1
        or input_quantization != last.outputs[0].type.quantization
        or input_quantization is None
    ):
        return ()
    is_plain = _is_unit(stored) and _is_unit(means[0].outputs[0].type.quantization)
    return chain if is_plain and input_quantization.axis is None else ()


def _is_unit(quantization: Quantization | None) -> bool:
    """Return whether integers are their own reals, or the slightly less that rounds halves up."""
    if quantization is None or any(quantization.zero_point) or len(quantization.scale) != 1:
        return False
    return _LEAST_SCALE <= quantization.scale[0] <= 1


def _quantized(source: Operand | None, inner: Sequence[Operation]) -> list[Operation]:
    """Return the operations on integers with the quantization of the source."""
    quantization = None if source is None else source.type.quantization
    assert quantization is not None, "the chain is quantized"
    fixed = replace(quantization, arithmetic=Arithmetic.FIXED_POINT)
    parts: list[Operation] = []
    for operation in inner:
        assert isinstance(operation, Operator), "a chain has operators"
        type_ = replace(operation.outputs[0].type, quantization=fixed)
        result = Operand(operation.outputs[0].name, type_)
        inputs = (source, *operation.inputs[1:])
        declared = (fixed,) if isinstance(operation, AveragePool2D) else ()
        part = type(operation)(operation.name, inputs, (result,), declared)
        parts.append(part.standing_for(operation))
        source = result
    return parts
