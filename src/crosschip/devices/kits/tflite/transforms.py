"""Fourier transforms of real signals, which importers write as matrix products."""

from __future__ import annotations

from math import prod

import numpy as np

from crosschip.devices.kits.tflite.native import Graph
from crosschip.ir import Array, ElementType, Model, Operand, Operation, TensorType
from crosschip.ir.dataclass import dataclass
from crosschip.ops.standard.matrix import MatMul
from crosschip.passes.base import Pass
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
