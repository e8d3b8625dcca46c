"""Computation of chosen quantized operations in float32."""

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
    """Lets chosen operations compute in float32 instead of on quantized tensors.

    1. A chosen operation reads a quantized tensor as float32: as the tensor that was rounded to it,
       if a chosen operation or no quantized one produced that; else through a `DEQUANTIZE`.
       Constants become float32 constants.
    2. Its outputs are not rounded for other chosen operations. Other readers get them through a
       `QUANTIZE`, as before.
    3. Operations on quantized tensors and float32 operations between `DEQUANTIZE` and `QUANTIZE`
       are treated alike.

    Extension operations and operations in bodies stay as they are.

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
                assert isinstance(operation, Operator), "is_quantized requires it"
                sweep.compute_in_float(operation)
            else:
                sweep.keep(operation)
        return sweep.rewriter.finish()


def is_quantized(operation: Operation, model: Model) -> bool:
    """Return whether an operation computes on quantized tensors, directly or dequantized."""
    if not isinstance(operation, Operator) or isinstance(operation, Quantize | Dequantize):
        return False
    is_dequantized = any(
        isinstance(model.producers.get(o), Dequantize) for o in operation.inputs if o
    )
    return is_dequantized or bool(operation.quantized_inputs())


class _Sweep:
    """One rewriting sweep over a model."""

    def __init__(self, rewriter: Rewriter) -> None:
        self.rewriter = rewriter
        self._unrounded_sources: dict[Operand, Operand] = {}  # by quantized tensor
        self._dequantized: dict[Operand, Operand] = {}
        self._in_float: set[Operand] = set()

    def keep(self, operation: Operation) -> None:
        """Keep an operation that is not chosen."""
        self.rewriter.keep(operation)
        if isinstance(operation, Quantize) and self._is_real(operation.input):
            self._unrounded_sources[operation.outputs[0]] = operation.input

    def compute_in_float(self, operation: Operator) -> None:
        """Emit a chosen operation in float32, with quantized outputs for other readers."""
        reads = tuple([None if o is None else self._read(operation, o) for o in operation.inputs])
        outputs = [self._unrounded(output) for output in operation.outputs]
        copy = type(operation)(operation.name, reads, tuple(outputs))
        self.rewriter.emit(copy.standing_for(operation))
        for old, output in zip(operation.outputs, outputs, strict=True):
            result = self.rewriter.resolve(output)
            self._in_float.add(result)
            if result.type.element_type is ElementType.FLOAT32 and old is not output:
                self._unrounded_sources[self._quantize(operation, result, old)] = result

    def _read(self, operation: Operator, operand: Operand) -> Operand:
        """Return the operand that replaces an input."""
        before = self.rewriter.producer(operand)
        if isinstance(before, Dequantize):
            source = before.input
            if source.is_constant:
                return _real_constant(source)
            return self._unrounded_sources.get(source, operand)
        if operand not in operation.quantized_inputs():
            return operand
        if operand.is_constant:
            return _real_constant(operand)
        return self._unrounded_sources.get(operand) or self._dequantize(operation, operand)

    def _dequantize(self, reader: Operation, operand: Operand) -> Operand:
        if operand not in self._dequantized:
            name = f"{operand.name}.real"
            bound = Dequantize.bind(name, (operand,), {})
            (type_,) = Dequantize(name, bound).infer()
            result = Operand(name, type_)
            self.rewriter.keep(Dequantize(name, bound, (result,)).standing_for(reader))
            self._dequantized[operand] = result
        return self._dequantized[operand]

    def _unrounded(self, output: Operand) -> Operand:
        """Return a float32 operand in place of a quantized output; other outputs unchanged."""
        if output.type.quantization is None:
            return output
        type_ = TensorType(ElementType.FLOAT32, output.type.shape)
        return Operand(f"{output.name}.unrounded", type_)

    def _quantize(self, producer: Operation, reals: Operand, old: Operand) -> Operand:
        """Emit a `QUANTIZE` of a chosen operation's result, for readers of the old output."""
        quantization = old.type.quantization
        assert quantization is not None, "it was quantized"
        name = f"{old.name}.rounded"
        settings = {**parameters(quantization), "dtype": old.type.element_type}
        bound = Quantize.bind(name, (reals,), settings)
        self.rewriter.emit(Quantize(name, bound, (old,)).standing_for(producer))
        return self.rewriter.resolve(old)

    def _is_real(self, operand: Operand) -> bool:
        """Return whether a float32 tensor was not produced by a quantized operation."""
        if operand in self._in_float:
            return True
        before = self.rewriter.producer(operand)
        reads: Sequence[Operand | None] = () if before is None else before.inputs
        return not any(
            o is not None
            and (o.type.quantization or isinstance(self.rewriter.producer(o), Dequantize))
            for o in reads
        )


def _real_constant(operand: Operand) -> Operand:
    """Return the float32 constant that a quantized constant represents."""
    quantization = operand.type.quantization
    assert quantization is not None, "a DEQUANTIZE reads it, or an operation that computes on reals"
    value = quantized.reals(np.asarray(operand.value), quantization).astype(np.float32)
    return constant(value, operand.name)
