"""A graph of the DDK in the making, and where the operands of the model are in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from crosschip.ir import Array, ElementType, Operand
from crosschip.ops import Operator as Operation
from crosschip.ops.definition import quantized
from fake_npu.forms import FROM_CHIP, TO_CHIP, Form, encoded, on_chip
from fake_npu.work import ANY
from fake_npu_ddk import DataType, Graph, Operator, Settings, Tensor


class Assembly:
    """What converters write to.

    Attributes:
        graph: the graph.
        bounds: those of the activation behind the operation that is being converted.
    """

    def __init__(self) -> None:
        self.graph = Graph()
        self.bounds = ANY
        self._values: dict[Operand, int] = {}

    def define(self, operand: Operand, value: int) -> None:
        """Say where an operand is."""
        self._values[operand] = value

    def __getitem__(self, operand: Operand) -> int:
        """The tensor of an operand; a constant becomes part of the graph."""
        value = self._values.get(operand)
        if value is None:
            elements = operand.value
            assert elements is not None, "an operation stands after those that it reads"
            value = self.graph.constant(tensor_of(operand), Form.of(operand).to_chip(elements))
            self._values[operand] = value
        return value

    def add(
        self,
        operator: Operator,
        inputs: Sequence[int],
        op: Operation,
        settings: Settings = Settings(),  # noqa: B008  # frozen
        shape: tuple[int, ...] | None = None,
    ) -> int:
        """A node that makes the output of an operation, with the activation that goes with it.

        Args:
            operator: the DDK's operator.
            inputs: the tensors that it reads.
            op: the operation.
            settings: the operator's settings.
            shape: that of the output on the chip, where it is not the usual one.
        """
        low, high = op.fused.bounds
        bounded = replace(
            settings,
            low=max(settings.low, low, self.bounds[0]),
            high=min(settings.high, high, self.bounds[1]),
        )
        made = tensor_of(op.outputs[0])
        return self.graph.add(operator, inputs, replace(made, shape=shape or made.shape), bounded)

    def plain(self, operand: Operand) -> int:
        """The tensor of an operand with the axes in the order of the model."""
        value = self[operand]
        return self.turned(value, FROM_CHIP) if len(operand.type.shape or ()) == 4 else value

    def shaped(self, value: int, shape: Sequence[int], like: Operand) -> int:
        """A plain tensor in another shape, its axes in the chip's order if it is an image."""
        tensor = replace(tensor_of(like), shape=tuple(shape) or (1,))
        reshaped = value
        if self.graph.tensors[value].shape != tensor.shape:
            reshaped = self.graph.add(Operator.RESHAPE, [value], tensor)
        return self.turned(reshaped, TO_CHIP) if len(shape) == 4 else reshaped

    def beside(self, operand: Operand, rank: int) -> int:
        """The tensor of an operand with axes of size 1 in front, as many as broadcasting adds."""
        shape = operand.type.static_shape or ()
        if len(shape) == rank or rank == 0:
            return self[operand]
        return self.shaped(self.plain(operand), (1,) * (rank - len(shape)) + shape, operand)

    def weights(self, operand: Operand, elements: Array) -> int:
        """A constant that is laid out anew, with the meaning of the bytes of an operand."""
        tensor = replace(tensor_of(operand), shape=elements.shape)
        return self.graph.constant(tensor, encoded(elements))

    def bias(self, bias: Operand | None, count: int, image: Operand, weights: Operand) -> int:
        """The bias of a product, in the unit of the products if they are of integers."""
        reals = np.zeros(count) if bias is None else np.asarray(reals_of(bias), np.float64)
        one, other = image.type.quantization, weights.type.quantization
        if one is None or other is None:
            tensor = Tensor(DataType.FLOAT16, (count,))
            return self.graph.constant(tensor, encoded(reals))
        unit = one.scale[0] * other.scale[0]
        steps = np.clip(np.rint(reals / unit), -(2**31), 2**31 - 1).astype(np.int32)
        return self.graph.constant(Tensor(DataType.INT32, (count,)), steps)

    def turned(self, value: int, order: Sequence[int]) -> int:
        """A tensor with its axes in another order: axis `i` is axis `order[i]`."""
        tensor = self.graph.tensors[value]
        turned = replace(tensor, shape=tuple(tensor.shape[axis] for axis in order))
        settings = Settings(order=tuple(order))
        return self.graph.add(Operator.TRANSPOSE, [value], turned, settings)


def tensor_of(operand: Operand) -> Tensor:
    """An operand as a tensor of the chip."""
    tensor = Form.of(operand).tensor
    meaning = on_chip(operand)
    if meaning is not None:
        return replace(tensor, scale=meaning.scale[0], zero_point=meaning.zero_point[0])
    if operand.type.element_type is ElementType.INT8:
        return replace(tensor, zero_point=128)
    return tensor


def reals_of(constant: Operand) -> Array:
    """The reals that a constant stands for."""
    elements, stored = constant.value, constant.type.quantization
    assert elements is not None, "it is constant"
    return elements if stored is None else quantized.reals(np.asarray(elements), stored)
