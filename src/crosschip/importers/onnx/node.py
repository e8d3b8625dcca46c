"""View of one graph node for import functions: typed attributes, inputs, and a builder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import starmap
from typing import TYPE_CHECKING, Any, TypeVar

from crosschip.importers.facts import fold_outputs
from crosschip.importers.onnx.schemas import defaults, domain_of
from crosschip.importers.onnx.tensors import text
from crosschip.importers.table import ImportTable
from crosschip.ir import (
    Array,
    Builder,
    ControlFlow,
    ElementType,
    ModelError,
    Operand,
    Quantization,
    UnsupportedError,
    constant,
)
from crosschip.onnx_messages import (
    AttributeProto,
    GraphProto,
    NodeProto,
    TensorProto,
    make_attribute,
)
from crosschip.ops import Operator
from crosschip.ops.definition.shapes import normalize_axis
from crosschip.ops.standard.arithmetic import Max, Min
from crosschip.ops.standard.pooling import MaxPool1D, MaxPool2D, MaxPool3D
from crosschip.ops.standard.quantization import Quantize, Reinterpret, parameters
from crosschip.ops.standard.reduction import ReduceMax, ReduceMin

if TYPE_CHECKING:
    from crosschip.importers.onnx.scope import Scope

T = TypeVar("T")

_MAX_CONSTANT = 2**24

_ORDERING = frozenset({Max, MaxPool1D, MaxPool2D, MaxPool3D, Min, ReduceMax, ReduceMin})
"""Operators that choose among elements, and know no more of them than their order."""

Import = Callable[["Node"], Operand | Sequence[Operand | None]]
"""Import function: appends the operations of a node and returns its outputs, in order.

Outputs that inference does not need may be `None`, or missing at the end.
"""

TABLE: ImportTable[Import] = ImportTable()
"""The import functions of all operators."""

imports = TABLE.imports


class Node:
    """One node of an ONNX graph.

    Reading an attribute consumes it: attributes that remain in the end are unknown to the import
    function. For an omitted attribute, readers return the default of ONNX's schema, else the
    default that they are passed; without either they raise.

    Attributes:
        proto: the node of the file.
        full_name: the operator with its domain, unless that is the standard one.
        type: the operator.
        opset: the version of the operator set.
        inputs: the operands; `None` for omitted ones. Operations that are added read the integers
            of quantized operands, as ONNX's operators do.
        outputs: the names of the outputs; empty for omitted ones.
        names: an iterator over names for the operations of the node.
        scope: the graph, which imports subgraphs.
    """

    __slots__ = (
        "_attributes",
        "_builder",
        "_domain",
        "_has_added",
        "_on_reals",
        "_opsets",
        "full_name",
        "inputs",
        "names",
        "opset",
        "outputs",
        "proto",
        "scope",
        "type",
    )

    def __init__(
        self,
        proto: NodeProto,
        opsets: Mapping[str, int],
        inputs: Sequence[Operand | None],
        outputs: Sequence[str],
        builder: Builder,
        names: Iterator[str],
        scope: Scope,
    ) -> None:
        self._domain = domain = domain_of(proto)
        self.proto = proto
        self.type = type_ = text(proto.op_type)
        self.full_name = f"{domain}.{type_}" if domain else type_
        self.opset = opsets.get(domain, 1)
        self.inputs = inputs
        self.outputs = outputs
        self.names = names
        self._attributes = {text(attribute.name): attribute for attribute in proto.attribute}
        if len(self._attributes) < len(proto.attribute):
            raise ModelError("has two attributes of one name")
        self._builder = builder
        self.scope = scope
        self._has_added = False
        self._on_reals = False
        self._opsets = opsets

    def __getitem__(self, index: int) -> Operand:
        """Return a required input.

        Raises:
            ModelError: the input is omitted.
        """
        operand = self.optional(index)
        if operand is None:
            raise ModelError(f"input {index} is required")
        return operand

    def optional(self, index: int) -> Operand | None:
        """Return an input that may be omitted."""
        return self.inputs[index] if index < len(self.inputs) else None

    def all_inputs(self) -> list[Operand]:
        """Return all inputs of a variadic operator, at least one."""
        return [self[index] for index in range(max(1, len(self.inputs)))]

    def add(self, operator: type[Operator], *arguments: object, **named: Any) -> Operand:
        """Append an operation with one output and return that output.

        An operation whose result is static is replaced by a constant.
        """
        return self.add_all(operator, *arguments, **named)[0]

    def add_all(
        self, operator: type[Operator], *arguments: object, **named: Any
    ) -> tuple[Operand, ...]:
        """Append an operation with any number of outputs and return them."""
        if not self._on_reals:
            arguments, named = self._on_integers(operator, arguments, named)
        name = next(self.names)
        # Usually the first operation is the only one, and its output is the node's. Later results
        # get names derived from the node's.
        outputs = () if self._has_added else self.outputs[:1]
        results = self._builder.add_all(operator, *arguments, name=name, outputs=outputs, **named)
        if self._has_added and len(results) == 1:
            inner = {results[0]: f"{name}.{operator.type.lower()}"}
            results = tuple(self._builder.rename(inner, len(self._builder.operations) - 1).values())
        self._has_added = True
        constants = fold_outputs(self._builder.operations[-1])
        if constants is None:
            return results
        self._builder.operations.pop()
        return constants

    def _on_integers(
        self, operator: type[Operator], arguments: tuple[object, ...], named: dict[str, Any]
    ) -> tuple[tuple[object, ...], dict[str, Any]]:
        """Return arguments that make an operation read the integers of quantized operands.

        Operators that only move or compare elements keep the quantization.
        """
        operands = [part for value in (*arguments, *named.values()) for part in _operands(value)]
        if all(operand.type.quantization is None for operand in operands):
            return arguments, named
        operation = operator("", operator.bind("", arguments, named))
        if not operation.quantized_inputs():
            return arguments, named
        quantization = operation.moved_quantization()
        if quantization is not None and operator.moves:
            return arguments, named
        if quantization is not None and operator in _ORDERING:
            return arguments, {**named, "quantization": quantization}
        return tuple(map(self._bare, arguments)), {n: self._bare(v) for n, v in named.items()}

    def _bare(self, argument: object) -> object:
        """Return an argument with its quantization removed from operands."""
        if isinstance(argument, Operand):
            if argument.type.quantization is None:
                return argument
            if argument.is_constant:
                plain = replace(argument.type, quantization=None)
                return Operand(argument.name, plain, argument.content)
            return self.add(Reinterpret, argument, bare=True)
        if isinstance(argument, list | tuple) and _operands(argument):
            return [self._bare(part) for part in argument]
        return argument

    def on_reals(
        self,
        type: str,
        inputs: Sequence[Operand | None],
        opset: int | None = None,
        **attributes: int,
    ) -> Operand:
        """Append another ONNX operator with this node's attributes, on dequantized inputs.

        Args:
            type: the name of a standard ONNX operator with one output.
            inputs: the inputs.
            opset: the version of the operator set; the model's by default.
            attributes: integers that replace this node's remaining attributes.
        """
        opsets = self._opsets if opset is None else {**self._opsets, "": opset}
        proto = NodeProto(op_type=type, output=self.outputs)
        if attributes:
            proto.attribute.extend(starmap(make_attribute, attributes.items()))
        else:
            proto.attribute.extend(self._attributes.values())
            self._attributes = {}
        scope = self.scope
        node = Node(proto, opsets, inputs, self.outputs, self._builder, self.names, scope)
        node._on_reals, node._has_added = True, self._has_added
        results = TABLE[type](node)
        node.finish()
        self._has_added = node._has_added
        first = results if isinstance(results, Operand) else results[0]
        assert first is not None, "the first output is never left out"
        return first

    def rounded(self, real: Operand, quantization: Quantization, dtype: ElementType) -> Operand:
        """Quantize the result of the last operation.

        If that operation computes on integers of the type, it quantizes its output itself.
        """
        last = self._builder.operations[-1] if self._builder.operations else None
        if isinstance(last, Operator) and last.outputs == (real,) and quantization.axis is None:
            sources = last.quantized_inputs()
            if sources and sources[0].type.element_type is dtype and not last.output_quantization:
                stored = replace(real.type, element_type=dtype, quantization=quantization)
                rounded = Operand(real.name, stored)
                rounding = type(last)(last.name, last.inputs, (rounded,), (quantization,))
                self._builder.operations[-1] = rounding.standing_for(last)
                return rounded
        return self.add(Quantize, real, **parameters(quantization), dtype=dtype)

    def constant(self, value: Array) -> Operand:
        """Return an operand for an array."""
        return constant(value, next(self.names))

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an integer attribute."""
        attribute = self._take(name, AttributeProto.INT)
        return _required_value(name, default) if attribute is None else attribute.i

    def flag(self, name: str, default: bool | None = None) -> bool:
        """Return an integer attribute that must be 0 or 1 as a boolean."""
        value = self.integer(name, default)
        if value not in (0, 1):
            raise ModelError(f"{name} is {value}, but must be 0 or 1")
        return bool(value)

    def real(self, name: str, default: float | None = None) -> float:
        """Return a floating-point attribute."""
        attribute = self._take(name, AttributeProto.FLOAT)
        return _required_value(name, default) if attribute is None else attribute.f

    def text(self, name: str, default: str | None = None) -> str:
        """Return a string attribute."""
        attribute = self._take(name, AttributeProto.STRING)
        if attribute is None:
            return _required_value(name, default)
        return attribute.s.decode("utf-8", "backslashreplace")

    def integers(self, name: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """Return an attribute that is a list of integers."""
        value = self.optional_integers(name)
        return _required_value(name, default) if value is None else value

    def optional_integers(self, name: str) -> tuple[int, ...] | None:
        """Return a list of integers; `None` if it is omitted and has no default."""
        attribute = self._take(name, AttributeProto.INTS)
        return None if attribute is None else tuple(attribute.ints)

    def reals(self, name: str, default: tuple[float, ...] | None = None) -> tuple[float, ...]:
        """Return an attribute that is a list of floating-point numbers."""
        attribute = self._take(name, AttributeProto.FLOATS)
        return _required_value(name, default) if attribute is None else tuple(attribute.floats)

    def texts(self, name: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Return an attribute that is a list of strings."""
        attribute = self._take(name, AttributeProto.STRINGS)
        if attribute is None:
            return _required_value(name, default)
        return tuple(value.decode("utf-8", "backslashreplace") for value in attribute.strings)

    def value(self, name: str) -> object | None:
        """Return an attribute of numbers, text or a tensor; `None` if it is omitted.

        Raises:
            ModelError: the attribute has another type.
        """
        attribute = self._attributes.get(name)
        if attribute is None:
            return None
        read = _READERS.get(attribute.type)
        if read is None:
            type_name = AttributeProto.AttributeType.Name(attribute.type)
            raise ModelError(f"attribute {name!r} is of type {type_name}, which is no plain value")
        return read(self, name)

    def graph(self, name: str) -> GraphProto:
        """Return a required graph attribute."""
        return _required_value(name, self._take(name, AttributeProto.GRAPH)).g

    def control(self, make: Callable[[str], ControlFlow]) -> tuple[Operand, ...]:
        """Append a control-flow operation that `make` builds for a name."""
        return self._builder.insert(make(next(self.names)))

    def tensor(self, name: str) -> Array:
        """Return the elements of a required tensor attribute."""
        return self.scope.array(_required_value(name, self._take(name, AttributeProto.TENSOR)).t)

    def tensor_operand(self, name: str) -> Operand:
        """Return an operand for a required tensor attribute of numbers or strings."""
        attribute = _required_value(name, self._take(name, AttributeProto.TENSOR))
        return self.scope.constant(attribute.t, self.outputs[0])

    def strings(self, values: Sequence[str], shape: Sequence[int]) -> Operand:
        """Return an operand for a tensor of strings."""
        encoded = [value.encode() for value in values]
        tensor = TensorProto(data_type=TensorProto.STRING, dims=shape, string_data=encoded)
        return self.scope.constant(tensor, self.outputs[0])

    def sparse_tensor(self, name: str) -> Array:
        """Return the elements of a required sparse tensor attribute."""
        attribute = _required_value(name, self._take(name, AttributeProto.SPARSE_TENSOR))
        return self.scope.dense(attribute.sparse_tensor)

    def has(self, name: str) -> bool:
        """Return whether an attribute is present and not yet read."""
        return name in self._attributes

    def ignore(self, *names: str) -> None:
        """Consume attributes that do not affect inference."""
        for name in names:
            self._attributes.pop(name, None)

    def finish(self) -> None:
        """Check that all attributes have been read.

        Raises:
            UnsupportedError: an attribute is unknown to the import function.
        """
        for name in self._attributes:
            raise UnsupportedError(f"attribute {name!r} is not known in opset {self.opset}")

    def _take(self, name: str, kind: AttributeProto.AttributeType) -> AttributeProto | None:
        attribute = self._attributes.pop(name, None)
        if attribute is None:
            return defaults(self._domain, self.type, self.opset).get(name)
        if attribute.type != kind:
            expected = AttributeProto.AttributeType.Name(kind)
            actual = AttributeProto.AttributeType.Name(attribute.type)
            raise ModelError(f"attribute {name!r} is of type {actual}, not {expected}")
        return attribute


def _operands(argument: object) -> list[Operand]:
    parts = argument if isinstance(argument, list | tuple) else (argument,)
    return [part for part in parts if isinstance(part, Operand)]


_READERS: Mapping[int, Callable[[Node, str], object]] = {
    AttributeProto.INT: Node.integer,
    AttributeProto.INTS: Node.integers,
    AttributeProto.FLOAT: Node.real,
    AttributeProto.FLOATS: Node.reals,
    AttributeProto.STRING: Node.text,
    AttributeProto.TENSOR: Node.tensor,
}


def _required_value(name: str, value: T | None) -> T:
    if value is None:
        raise ModelError(f"attribute {name!r} is required")
    return value


def axis_from_front(axis: int, rank: int) -> int:
    """Return a nonnegative axis index; raise `ModelError` if it is out of range for the rank."""
    try:
        return normalize_axis(axis, rank)
    except ValueError as error:
        raise ModelError(str(error)) from None


def bounded(count: int) -> int:
    """Return the element count of a constant that replaces a node.

    Raises:
        UnsupportedError: the count exceeds the limit.
    """
    if count > _MAX_CONSTANT:
        raise UnsupportedError(f"standard operators would need a constant of {count} elements")
    return count


def only(name: str, value: T, *supported: T) -> T:
    """Return an attribute's value if it is supported.

    Raises:
        UnsupportedError: it is not; the message names the attribute and the value.
    """
    if value not in supported:
        values = " or ".join(map(str, supported))
        raise UnsupportedError(f"{name} {value} cannot be expressed, only {values}")
    return value
