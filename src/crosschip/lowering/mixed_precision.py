"""Computation in float32 of chosen operations of a quantized model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from crosschip.ir import ElementType, Model, Operand, Operation, TensorType, constant
from crosschip.ir.dataclass import dataclass
from crosschip.ops import Operator
from crosschip.ops.definition import quantized
from crosschip.ops.standard.quantization import Dequantize, Quantize, parameters
from crosschip.passes.base import Pass
from crosschip.passes.rewriter import Rewriter


@dataclass(frozen=True)
class InFloat(Pass):
    """Has chosen operations compute in float32 what they computed on quantized tensors.

    1. What a chosen operation reads of quantized tensors is what their integers stand for: the
       float32 tensor that was rounded to them, where a chosen operation made it or nothing
       quantized did; else the `DEQUANTIZE` of it. Constants become float32 constants.
    2. What it makes is not rounded for other chosen operations. Whoever else reads it gets it as
       before, behind a `QUANTIZE`.
    3. It does not matter whether the model has operations on quantized tensors, or float32 ones
       between `DEQUANTIZE` and `QUANTIZE`.

    Other operations than those of `crosschip.ops`, and those in bodies, stay as they are.

    Args:
        chosen: operations of the model.
    """

    exact = False

    chosen: frozenset[Operation] = field(repr=False)

    def rewrite(self, model: Model) -> Model:
        sweep = _Sweep(Rewriter(model))
        for old in model.operations:
            operation = sweep.rewriter.resolved(old)
            if old in self.chosen and is_quantized(old, model):
                assert isinstance(operation, Operator), "no other is quantized"
                sweep.compute_in_float(operation)
            else:
                sweep.keep(operation)
        return sweep.rewriter.finish()


def is_quantized(operation: Operation, model: Model) -> bool:
    """Tell whether an operation computes on quantized tensors, in one form or the other."""
    if not isinstance(operation, Operator) or isinstance(operation, Quantize | Dequantize):
        return False
    reads_dequantized = any(
        isinstance(model.producers.get(o), Dequantize) for o in operation.inputs if o
    )
    return reads_dequantized or bool(operation.quantized_inputs())


class _Sweep:
    """The rewriting of a model, from its first operation to its last."""

    def __init__(self, rewriter: Rewriter) -> None:
        self.rewriter = rewriter
        # What quantized tensors were rounded from, and what they have been converted to.
        self._exact: dict[Operand, Operand] = {}
        self._converted: dict[Operand, Operand] = {}
        self._in_float: set[Operand] = set()

    def keep(self, operation: Operation) -> None:
        """Keep an operation that is not chosen."""
        self.rewriter.keep(operation)
        if isinstance(operation, Quantize) and self._is_real(operation.input):
            self._exact[operation.outputs[0]] = operation.input

    def compute_in_float(self, operation: Operator) -> None:
        """Replace a chosen operation, and make of its outputs what others read."""
        reads = tuple([None if o is None else self._read(operation, o) for o in operation.inputs])
        plain = type(operation)(operation.name, reads, operation.outputs).standing_for(operation)
        outputs = [self._unrounded(output) for output in operation.outputs]
        self.rewriter.emit(plain.with_outputs(tuple(outputs)))
        for old, output in zip(operation.outputs, outputs, strict=True):
            result = self.rewriter.resolve(output)
            self._in_float.add(result)
            if result.type.element_type is ElementType.FLOAT32 and old is not output:
                self._exact[self._rounded(operation, result, old)] = result

    def _read(self, operation: Operator, operand: Operand) -> Operand:
        """The operand that an input becomes."""
        before = self.rewriter.producer(operand)
        if isinstance(before, Dequantize):
            source = before.input
            if source.is_constant:
                return _real(source)
            return self._exact.get(source, operand)
        if operand not in operation.quantized_inputs():
            return operand
        if operand.is_constant:
            return _real(operand)
        return self._exact.get(operand) or self._dequantized(operation, operand)

    def _dequantized(self, reader: Operation, operand: Operand) -> Operand:
        if operand not in self._converted:
            name = f"{operand.name}.real"
            bound = Dequantize.bind(name, (operand,), {})
            (type_,) = Dequantize(name, bound).infer()
            result = Operand(name, type_)
            self.rewriter.keep(Dequantize(name, bound, (result,)).standing_for(reader))
            self._converted[operand] = result
        return self._converted[operand]

    def _unrounded(self, output: Operand) -> Operand:
        """The float32 operand in place of a quantized one; one that is none stays."""
        if output.type.quantization is None:
            return output
        return Operand(f"{output.name}.unrounded", _float32(output))

    def _rounded(self, maker: Operation, reals: Operand, old: Operand) -> Operand:
        """The quantized operand that an operation made before, for those who still read it."""
        known = old.type.quantization
        assert known is not None, "it was quantized"
        name = f"{old.name}.rounded"
        settings = {**parameters(known), "dtype": old.type.element_type}
        bound = Quantize.bind(name, (reals,), settings)
        self.rewriter.emit(Quantize(name, bound, (old,)).standing_for(maker))
        return self.rewriter.resolve(old)

    def _is_real(self, operand: Operand) -> bool:
        """Tell whether a float32 tensor is none that a quantized operation made."""
        if operand in self._in_float:
            return True
        before = self.rewriter.producer(operand)
        reads: Sequence[Operand | None] = () if before is None else before.inputs
        return not any(
            o is not None
            and (o.type.quantization or isinstance(self.rewriter.producer(o), Dequantize))
            for o in reads
        )


def _real(operand: Operand) -> Operand:
    """The float32 constant that a quantized one stands for."""
    known = operand.type.quantization
    assert known is not None, "a DEQUANTIZE reads it, or an operation that computes on reals"
    value = quantized.reals(np.asarray(operand.value), known).astype(np.float32)
    return constant(value, operand.name)


def _float32(operand: Operand) -> TensorType:
    return TensorType(ElementType.FLOAT32, operand.type.shape)
