"""Building an OpenVINO model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
import openvino
from openvino import Node, Output, PartialShape, Type
from openvino import opset15 as ops

from crosschip.devices.openvino.memory import shared_tensor
from crosschip.ir import Array, Dim, ElementType, Operand, Operation

Value: TypeAlias = Node | Output
_SHARED_BYTES = 1024

TYPES = {
    ElementType.BOOL: Type.boolean,
    ElementType.INT8: Type.i8,
    ElementType.UINT8: Type.u8,
    ElementType.INT16: Type.i16,
    ElementType.UINT16: Type.u16,
    ElementType.INT32: Type.i32,
    ElementType.UINT32: Type.u32,
    ElementType.INT64: Type.i64,
    ElementType.UINT64: Type.u64,
    ElementType.FLOAT16: Type.f16,
    ElementType.BFLOAT16: Type.bf16,
    ElementType.FLOAT32: Type.f32,
    ElementType.FLOAT64: Type.f64,
}


class Graph:
    """An OpenVINO graph in the making; knows the node that stands for each operand.

    Attributes:
        kept: the arrays whose memory constants are in.
    """

    def __init__(self, inputs: Iterable[Operand]) -> None:
        self._values: dict[Operand, Value] = {}
        self._parameters: list[Node] = []
        self.kept: list[Array] = []
        for operand in inputs:
            parameter = ops.parameter(_shape(operand), TYPES[operand.type.element_type])
            self._values[operand] = parameter
            self._parameters.append(parameter)

    def __getitem__(self, operand: Operand) -> Value:
        """What stands for an operand; a constant is added when first asked for."""
        value = self._values.get(operand)
        if value is None:
            elements = operand.value
            assert elements is not None, "an operation stands after those that it reads"
            value = self._values[operand] = self.constant(elements)
        return value

    def define(self, operation: Operation, values: Sequence[Value]) -> None:
        """Say what stands for the outputs of an operation."""
        self._values.update(zip(operation.outputs, values, strict=True))

    def constant(self, value: Array) -> Node:
        """A constant; a large one is not copied."""
        array = np.asarray(value, order="C")
        tensor = shared_tensor(array)
        if array.nbytes < _SHARED_BYTES:
            return openvino.op.Constant(tensor, shared_memory=False)
        self.kept.append(array)
        return openvino.op.Constant(tensor, shared_memory=True)

    def int64(self, values: Iterable[int]) -> Node:
        """A constant list of integers."""
        return self.constant(np.array([*values], np.int64))

    def scalar(self, value: int) -> Node:
        """One integer."""
        return self.constant(np.array(value))

    def number(self, value: float, like: Operand) -> Node:
        """One number of the element type of an operand."""
        return self.constant(np.array(value, like.type.element_type.dtype))

    def indices(self, operand: Operand | None) -> Node:
        """The list of integers that a parameter holds."""
        assert operand is not None, "only asked for where it is not left out"
        if operand.value is not None:
            return self.int64(operand.value.ravel().tolist())
        return ops.reshape(ops.convert(self[operand], "i64"), self.int64([-1]), False)

    def reshaped(self, operand: Operand, shape: Sequence[int]) -> Node:
        """An operand in another shape; for a constant that costs nothing."""
        if operand.value is not None:
            return self.constant(operand.value.reshape(shape))
        return ops.reshape(self[operand], self.int64(shape), False)

    def sizes(self, operand: Operand, start: int) -> Node:
        """The sizes of the axes from `start` on; a constant if they are known."""
        known = operand.type.shape or ()
        sizes = [size for size in known[start:] if isinstance(size, int)]
        if len(sizes) == len(known[start:]):
            return self.int64(sizes)
        every = self.int64(range(start, len(known)))
        return ops.gather(ops.shape_of(self[operand]), every, self.scalar(0))

    def finish(self, outputs: Iterable[Operand]) -> openvino.Model:
        """The model whose results stand for these operands, in order."""
        results = [ops.result(self._computed(self[operand])) for operand in outputs]
        return openvino.Model(results, self._parameters, "crosschip")

    def _computed(self, value: Value) -> Value:
        """A value that is no input: OpenVINO leaves an output that is one unwritten."""
        is_input = any(value is parameter for parameter in self._parameters)
        return ops.convert(value, value.get_element_type()) if is_input else value


def _shape(operand: Operand) -> PartialShape:
    if operand.type.shape is None:
        return PartialShape.dynamic()
    return PartialShape([_size(size) for size in operand.type.shape])


def _size(size: Dim) -> int:
    return size if isinstance(size, int) else -1
