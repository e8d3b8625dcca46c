"""Fourier transforms of real signals, which importers write as matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from crosschip.devices.kits.tflite.native import Graph
from crosschip.ir import Array, Builder, ElementType, Model, Operand, Operation, TensorType
from crosschip.ir.dataclass import dataclass
from crosschip.ops.standard.arithmetic import Add, Mul
from crosschip.ops.standard.joining import Stack
from crosschip.ops.standard.layout import Reshape, Squeeze, Unsqueeze
from crosschip.ops.standard.matrix import MatMul
from crosschip.ops.standard.reduction import ReduceL2
from crosschip.ops.standard.unary import Sqrt
from crosschip.passes.base import Pass
from crosschip.passes.remove_unused import RemoveUnused
from crosschip.passes.rewrite_operations import operations_for

_LEAST_LENGTH = 16
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class RecognizeTransforms(Pass):
    """Replaces products with the cosines and sines of a Fourier transform by `RFFT2D`.

    The kernel takes lengths that are powers of two. Both products of a signal share its transform.
    """

    exact = False

    def rewrite(self, model: Model) -> Model:
        used_names = {operation.name for operation in model.operations}
        spectra: dict[Operand, Operand] = {}
        operations: list[Operation] = []
        for operation in model.operations:
            part = _part(operation) if isinstance(operation, MatMul) else None
            if not isinstance(operation, MatMul) or part is None:
                operations.append(operation)
                continue
            graph = Graph(prefix=f"{operation.name}.", used_names=used_names)
            if operation.x not in spectra:
                spectra[operation.x] = _spectrum(graph, operation.x)
            spectrum, output = spectra[operation.x], operation.outputs[0]
            result = graph.native(part, spectrum, type=spectrum.type)
            if spectrum.type.shape != output.type.shape:
                result = graph.add_reshape(result, output.type)
            parts = operations_for(operation.outputs, [result], graph)
            operations += [each.standing_for(operation) for each in parts]
        return model if not spectra else Model(model.name, model.inputs, operations, model.outputs)


@dataclass(frozen=True)
class ExpandMagnitudes(Pass):
    """Replaces the norm of real and imaginary parts, stacked last, by sums of two squares.

    The kernels for sums along a short last axis take longer than the transform.
    """

    exact = False

    def rewrite(self, model: Model) -> Model:
        used_names = {operation.name for operation in model.operations}
        operations: list[Operation] = []
        for operation in model.operations:
            parts = _stacked(operation, model) if isinstance(operation, ReduceL2) else ()
            shape = operation.outputs[0].type.static_shape
            if not parts or shape is None:
                operations.append(operation)
                continue
            b = Builder(prefix=f"{operation.name}.", used_names=used_names)
            squares = [b.add(Mul, part, part) for part in parts]
            norm = b.add(Sqrt, b.add(Add, *squares))
            if norm.type.static_shape != shape:
                norm = b.add(Reshape, norm, shape)
            new = operations_for(operation.outputs, [norm], b)
            operations += [each.standing_for(operation) for each in new]
        if len(operations) == len(model.operations):  # what replaces one has more
            return model
        return RemoveUnused()(Model(model.name, model.inputs, operations, model.outputs))


def _stacked(norm: ReduceL2, model: Model) -> Sequence[Operand]:
    """Return the two parts of which a norm is taken; none if there are others."""
    source = norm.input
    rank = len(source.type.shape or ())
    if source.type.element_type is not ElementType.FLOAT32 or norm.axes not in ((-1,), (rank - 1,)):
        return ()
    producer = model.producers.get(source)
    while isinstance(producer, Reshape | Squeeze | Unsqueeze):
        if (producer.outputs[0].type.shape or ())[-1:] != (2,):
            return ()
        producer = model.producers.get(producer.input)
    if not isinstance(producer, Stack) or len(producer.parts) != 2:
        return ()
    last = len(producer.outputs[0].type.shape or ()) - 1
    return producer.parts if producer.axis in (-1, last) else ()


def _part(product: MatMul) -> str | None:
    """Return the operator that takes a product's part of the transform, or `None`."""
    signal, matrix = product.x.type, product.y.value
    if signal.element_type is not ElementType.FLOAT32 or signal.static_shape is None:
        return None
    if matrix is None or matrix.ndim != 2 or product.transpose_x or product.transpose_y:
        return None
    length, count = matrix.shape
    is_power = length >= _LEAST_LENGTH and length & (length - 1) == 0
    if not is_power or count != length // 2 + 1:
        return None
    angles = 2 * np.pi / length * (np.outer(np.arange(length), np.arange(count)) % length)
    parts = {"REAL": np.cos(angles), "IMAG": -np.sin(angles)}
    return next((part for part, waves in parts.items() if _close(matrix, waves)), None)


def _close(a: Array, b: Array) -> bool:
    return bool(np.abs(a - b).max() <= _TOLERANCE)


def _spectrum(g: Graph, signal: Operand) -> Operand:
    """Add the transform along the last axis: complex numbers, of which each is one element."""
    *rows, length = signal.type.static_shape or ()
    if rows[-1:] != [1]:  # the kernel transforms images; these are of one row
        rows = [prod(rows), 1]
        signal = g.add_reshape(signal, TensorType(ElementType.FLOAT32, (*rows, length)))
    type_ = TensorType(ElementType.FLOAT32, (*rows, length // 2 + 1))
    return g.native("RFFT2D", signal, g.int32([1, length]), type=type_)
