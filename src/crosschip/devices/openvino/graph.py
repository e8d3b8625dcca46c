"""Construction of an OpenVINO model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import reduce
from typing import TypeAlias

import numpy as np
import openvino
from openvino import Node, Output, PartialShape, Type
from openvino import opset15 as ops

from crosschip.devices.openvino.bounds import Bounds, Parts
from crosschip.devices.openvino.conditions import Condition, Conditions, equal
from crosschip.devices.openvino.memory import shared_tensor
from crosschip.devices.openvino.requirements import Requirements
from crosschip.devices.openvino.sizes import OpenSizes
from crosschip.ir import Array, Dim, ElementType, Operand, Operation
from crosschip.ir.dimension import is_natural, is_unknown, product

Value: TypeAlias = Node | Output
_SHARED_BYTES = 1024
_COMPARED = 2**24
"""The integer below which float32 holds all integers."""
_OUT_OF_RANGE = "indices: one is out of range"

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
    """An OpenVINO graph under construction, with the value of each operand.

    Attributes:
        parameters: the parameters of the inputs.
        constant_arrays: the arrays whose memory the constants share.
        requirements: the conditions that each run is checked for.
        quantized_intermediates: the quantized operands between operations that compute on floats.
        dequantized_addends: the dequantized operands that are only added to other floats.
        open_sizes: the dynamic dimensions.
        byte_nodes: for byte operands, the node that marks them as bytes (`as_bytes`), so that
            OpenVINO multiplies in int8.
    """

    def __init__(
        self,
        inputs: Iterable[Operand],
        quantized_intermediates: Collection[Operand] = (),
        dequantized_addends: Collection[Operand] = (),
    ) -> None:
        self.quantized_intermediates = quantized_intermediates
        self.dequantized_addends = dequantized_addends
        self.byte_nodes: dict[Operand, Node] = {}
        self._values: dict[Operand, Value] = {}
        self.parameters: list[Node] = []
        self._inputs = list(inputs)
        self._flags: list[Node] = []
        self.constant_arrays: list[Array] = []
        self.open_sizes = OpenSizes()
        conditions = Conditions([o.type for o in self._inputs], self.open_sizes.stretched)
        self.requirements = Requirements(sizes=conditions)
        self._bounds = Bounds()
        self._parts = Parts(self._inputs)
        self._inside: dict[tuple[Operand, Sequence[Dim], int | None], Node] = {}
        for operand in self._inputs:
            parameter = ops.parameter(_shape(operand), TYPES[operand.type.element_type])
            self._values[operand] = parameter
            self.parameters.append(parameter)
            self.open_sizes.note(operand, parameter)
        self._note_sizes(self._inputs)

    def __getitem__(self, operand: Operand) -> Value:
        """Return the value of an operand; a constant is created on first use."""
        value = self._values.get(operand)
        if value is None:
            elements = operand.value
            assert elements is not None, "an operation stands after those that it reads"
            value = self._values[operand] = self.constant(elements)
        return value

    def define(self, operation: Operation, values: Sequence[Value]) -> None:
        """Store the values of an operation's outputs."""
        self._values.update(zip(operation.outputs, values, strict=True))
        self._note_sizes(operation.outputs)
        self.open_sizes.note_made(operation, values)
        self._bounds.follow(operation)
        self._parts.follow(operation)

    def constant(self, value: Array) -> Node:
        """Create a constant; a large one shares the array's memory."""
        array = np.asarray(value, order="C")
        tensor = shared_tensor(array)
        if array.nbytes < _SHARED_BYTES:
            return openvino.op.Constant(tensor, shared_memory=False)
        self.constant_arrays.append(array)
        return openvino.op.Constant(tensor, shared_memory=True)

    def packed(self, value: Array, type: Type) -> Node:
        """Create a constant of four-bit integers from the lower halves of bytes."""
        halves = np.append(value.ravel() & 15, np.zeros(value.size % 2, np.uint8))
        self.constant_arrays.append(halves[::2] | halves[1::2] << 4)
        shape = openvino.Shape(value.shape)
        tensor = openvino.Tensor(self.constant_arrays[-1], shape, type)
        return openvino.op.Constant(tensor, shared_memory=True)

    def int64(self, values: Iterable[int]) -> Node:
        """Create a constant list of int64."""
        return self.constant(np.array([*values], np.int64))

    def scalar(self, value: int) -> Node:
        """Create an int64 scalar."""
        return self.constant(np.array(value))

    def number(self, value: float, like: Operand) -> Node:
        """Create a scalar of an operand's element type."""
        return self.constant(np.array(value, like.type.element_type.dtype))

    def indices(self, operand: Operand | None) -> Node:
        """Return a parameter's integers as a list of int64."""
        assert operand is not None, "only asked for where it is not left out"
        if operand.value is not None:
            return self.int64(operand.value.ravel().tolist())
        return ops.reshape(ops.convert(self[operand], "i64"), self.int64([-1]), False)

    def reshaped(self, operand: Operand, shape: Sequence[int]) -> Value:
        """Reshape an operand; a constant is reshaped while compiling."""
        if operand.type.shape == tuple(shape):
            return self[operand]
        if operand.value is not None:
            return self.constant(operand.value.reshape(shape))
        return ops.reshape(self[operand], self.int64(shape), False)

    def sizes(self, operand: Operand, start: int) -> Node:
        """Return the sizes of the axes from `start` on; a constant if they are static."""
        shape = operand.type.shape or ()
        sizes = [size for size in shape[start:] if isinstance(size, int)]
        if len(sizes) == len(shape[start:]):
            return self.int64(sizes)
        axes = self.int64(range(start, len(shape)))
        return ops.gather(ops.shape_of(self[operand]), axes, self.scalar(0))

    def size(self, operand: Operand, axis: int) -> Node:
        """Return the size of an axis as an int64 scalar; a constant if it is static."""
        static = (operand.type.shape or ())[axis]
        if isinstance(static, int):
            return self.scalar(static)
        value = self.open_sizes.value(static)
        if value is not None:
            return value
        sizes = ops.shape_of(self[operand])
        return ops.gather(sizes, self.scalar(axis), self.scalar(0))

    def require(self, operation: Operation, rule: str, holds: Node) -> None:
        """Refuse runs in which an element of a boolean tensor is false.

        Args:
            operation: the operation that requires it.
            rule: the error message, `slot: rule`.
            holds: the boolean tensor.
        """
        flat = ops.reshape(holds, self.int64([-1]), False)
        if flat.get_output_partial_shape(0) != PartialShape([1]):
            flat = ops.reduce_logical_and(flat, self.int64([0]), True)
        self._flags.append(flat)
        self.requirements.rules.append(f"{operation.type} {operation.name!r}: {rule}")

    def some(self, operation: Operation, axes: Iterable[int]) -> None:
        """Refuse runs in which the first input of an operation is empty along one of these axes."""
        data = operation.inputs[0]
        assert data is not None, "it is required"
        for axis in axes:
            if not isinstance((data.type.shape or ())[axis], int):
                self._require_some(
                    operation, f"input: there are no elements on axis {axis}", data, axis
                )

    def _require_some(self, operation: Operation, rule: str, data: Operand, axis: int) -> None:
        """Refuse runs in which an axis is empty."""
        if not self.require_sizes(operation, rule, [(data.type.shape or ())[axis] - 1]):
            self.require(operation, rule, ops.greater(self.size(data, axis), self.scalar(0)))

    def require_sizes(self, operation: Operation, rule: str, *alternatives: Sequence[Dim]) -> bool:
        """Refuse runs by the shapes of the inputs, if these determine the sizes.

        Args:
            operation: the operation that requires it.
            rule: the error message.
            alternatives: lists of expressions over sizes; of each list, one expression must be 0 or
                more.

        Returns:
            Whether the shapes of inputs determine the condition; if not, nothing has been done.
        """
        resolved = [tuple(map(self.open_sizes.resolved, natural)) for natural in alternatives]
        uncertain = [natural for natural in resolved if not any(map(is_natural, natural))]
        conditions = self.requirements.sizes
        if not all(map(conditions.determines, uncertain)):
            return False
        for natural in uncertain:
            rule_of_operation = f"{operation.type} {operation.name!r}: {rule}"
            conditions.add(Condition(natural, rule_of_operation))
        return True

    def require_natural(self, operation: Operation, rule: str, operand: Operand) -> bool:
        """Refuse runs in which a parameter has negative numbers.

        Returns:
            Whether the shapes of inputs determine the parameter; if not, nothing has been done.
        """
        if operand.value is not None:
            return True
        values = operand.type.shape_value
        # Unnamed dimensions are assumed to be natural, which an element need not be.
        if values is None or any(map(is_unknown, values)):
            return False
        return self.require_sizes(operation, rule, *([value] for value in values))

    def within(
        self,
        operation: Operation,
        indices: Operand,
        data: Operand,
        axes: Sequence[int],
        *,
        least: int | None = None,
    ) -> Value:
        """Return indices clamped to the range of their axes; refuse runs in which one changes.

        Constants for axes of static size are returned as they are: a converter's limit has checked
        them.

        Args:
            operation: the operation that reads the indices.
            indices: one index per element; with several axes, one per axis along the last axis.
            data: the indexed operand.
            axes: the indexed axes of the data.
            least: the least index; by default, the negative of the size.
        """
        sizes = [(data.type.shape or ())[axis] for axis in axes]
        if indices.value is not None and all(isinstance(size, int) for size in sizes):
            return self[indices]
        if len(axes) == 1 and least is None and _are_ends(indices):
            self._require_some(operation, _OUT_OF_RANGE, data, axes[0])
            return self[indices]
        if self._bounds.are_within(indices, sizes) or self._require_greatest(
            operation, indices, sizes
        ):
            return self[indices]
        part = self._parts.of(indices)
        if len(axes) == 1 and isinstance(sizes[0], int) and part is not None:
            range_ = (-sizes[0] if least is None else least, sizes[0] - 1)
            rule = f"{operation.type} {operation.name!r}: indices"
            self.requirements.bound(*part, range_, rule)
            return self[indices]
        clamped = self._inside.get((indices, (*sizes,), least))
        if clamped is None:
            value = self[indices]
            source = _before_broadcast(value, indices) if len(axes) == 1 else value
            clamped, holds = self._clamp(source, data, axes, least)
            if source is not value:
                spread = value if isinstance(value, Node) else value.get_node()
                clamped = ops.broadcast(
                    clamped, spread.input_value(1), broadcast_spec="bidirectional"
                )
            self._inside[indices, (*sizes,), least] = clamped
            self.require(operation, _OUT_OF_RANGE, holds)
        return clamped

    def _clamp(
        self, indices: Value, data: Operand, axes: Sequence[int], least: int | None
    ) -> tuple[Node, Node]:
        """Return the clamped indices, and a boolean tensor that is true where none changed."""
        sizes = [(data.type.shape or ())[axis] for axis in axes]
        size, *others = sizes
        if not others and isinstance(size, int) and 0 < size < _COMPARED:
            # In this range float32 tells indices apart (quirk `large-integers-compared`).
            inside = ops.clamp(indices, -size if least is None else least, size - 1)
            return inside, ops.equal(indices, inside)
        parts = [self.size(data, axis) for axis in axes]
        ends = (
            parts[0]
            if len(axes) == 1
            else ops.concat([ops.unsqueeze(part, self.scalar(0)) for part in parts], 0)
        )
        ends = ops.convert(ends, indices.get_element_type())
        one = ops.convert(self.scalar(1), indices.get_element_type())
        first = ops.negative(ends) if least is None else self.scalar(least)
        first = ops.convert(first, indices.get_element_type())
        inside = ops.maximum(ops.minimum(indices, ops.subtract(ends, one)), first)
        # Compared with 0, as other large integers are compared as float32.
        zero = ops.convert(self.scalar(0), indices.get_element_type())
        holds = ops.equal(ops.subtract(indices, inside), zero)
        if not all(isinstance(each, int) and each for each in sizes):
            holds = ops.logical_and(holds, ops.greater(ends, zero))
        return inside, holds

    def _require_greatest(
        self, operation: Operation, indices: Operand, sizes: Sequence[Dim]
    ) -> bool:
        """Refuse runs in which the greatest index is out of range; return whether it is known."""
        greatest = self._bounds.greatest(indices, len(sizes))
        if greatest is None or indices.type.shape is None:
            return False
        nothing = equal(product(indices.type.shape), 0)
        alternatives = [
            (size - 1 - last, nothing) for size, last in zip(sizes, greatest, strict=True)
        ]
        return self.require_sizes(operation, _OUT_OF_RANGE, *alternatives)

    def finish(self, outputs: Iterable[Operand]) -> openvino.Model:
        """Return the model that computes these operands, in order.

        If there are rules, an additional output has one boolean per rule: whether it holds.
        """
        values = [self._as_computed(self[operand]) for operand in outputs]
        if self._flags:
            values.append(self._flag_list())
        results = [ops.result(value) for value in values]
        return openvino.Model(results, self.parameters, "crosschip")

    def _flag_list(self) -> Node:
        """Return a list of one boolean per rule.

        A Concat anywhere in a graph makes OpenVINO align quantized tensors in the whole graph, some
        of them wrongly.
        """
        if not self.quantized_intermediates:
            return ops.concat(self._flags, 0)
        others = ~np.eye(len(self._flags), dtype=bool)
        rows = map(ops.logical_or, self._flags, map(self.constant, others))
        return reduce(ops.logical_and, rows)

    def _note_sizes(self, operands: Iterable[Operand]) -> None:
        if any(operand.type.static_shape is None for operand in operands):
            self.requirements.open_sizes = True

    def _as_computed(self, value: Value) -> Value:
        """Convert an input to its own type: OpenVINO leaves outputs that are inputs unwritten."""
        node = value if isinstance(value, Node) else value.get_node()
        is_input = node.get_type_name() == "Parameter"
        return ops.convert(value, value.get_element_type()) if is_input else value


def _before_broadcast(value: Value, operand: Operand) -> Value:
    """Return the value that was broadcast to a tensor that is not empty; else the tensor."""
    node = value if isinstance(value, Node) else value.get_node()
    shape = operand.type.static_shape
    if shape is None or 0 in shape or node.get_type_name() != "Broadcast":
        return value
    is_spread = node.get_attributes()["mode"] == "bidirectional"
    return node.input_value(0) if is_spread else value


def _are_ends(indices: Operand) -> bool:
    """Return whether all indices are 0 or -1, which are in range unless the axis is empty."""
    elements = indices.value
    return elements is not None and elements.size > 0 and bool(np.isin(elements, (0, -1)).all())


def _shape(operand: Operand) -> PartialShape:
    if operand.type.shape is None:
        return PartialShape.dynamic()
    return PartialShape([_size(size) for size in operand.type.shape])


def _size(size: Dim) -> int:
    return size if isinstance(size, int) else -1
