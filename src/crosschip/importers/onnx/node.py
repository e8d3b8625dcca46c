"""A node of a graph, with typed attributes, as the functions that import operators see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import starmap
from typing import Any, Protocol, TypeVar

from crosschip.importers.body import Body
from crosschip.importers.onnx.known import known_outputs
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
    TensorType,
    UnsupportedError,
    constant,
)
from crosschip.onnx_messages import (
    AttributeProto,
    GraphProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    make_attribute,
)
from crosschip.ops import Operator
from crosschip.ops.definition.shapes import axis_in
from crosschip.ops.standard.arithmetic import Max, Min
from crosschip.ops.standard.pooling import MaxPool1D, MaxPool2D, MaxPool3D
from crosschip.ops.standard.quantization import Quantize, Reinterpret, parameters
from crosschip.ops.standard.reduction import ReduceMax, ReduceMin

T = TypeVar("T")

_MAX_CONSTANT = 2**24

_ORDERING = frozenset({Max, MaxPool1D, MaxPool2D, MaxPool3D, Min, ReduceMax, ReduceMin})
"""Operators that choose among elements, and know no more of them than their order."""

Import = Callable[["Node"], Operand | Sequence[Operand | None]]
"""Adds the operations that a node stands for; returns the operands for its outputs, in order.

Outputs that inference does not need may be missing at the end, or be `None`.
"""

TABLE: ImportTable[Import] = ImportTable()
"""The functions for all operators that can be imported."""

imports = TABLE.imports


class Surroundings(Protocol):
    """The questions of a node to the graph that it stands in."""

    def array(self, tensor: TensorProto) -> Array:
        """The elements of a tensor that an attribute holds."""

    def constant(self, tensor: TensorProto, name: str) -> Operand:
        """The operand for a tensor that an attribute holds."""

    def dense(self, tensor: SparseTensorProto) -> Array:
        """The elements of a tensor that is stored without its zeros."""

    def run_graph(self, graph: GraphProto, arguments: Sequence[Operand]) -> list[Operand]:
        """Import a graph that an attribute holds, with operands for its inputs."""

    def run_body(self, graph: GraphProto, types: Sequence[TensorType]) -> Body:
        """Import a graph that an attribute holds as a model of its own."""

    def state_body(
        self,
        graph: GraphProto,
        before: Sequence[TensorType],
        state: Sequence[TensorType],
        after: Sequence[TensorType],
        skipped: int,
    ) -> Body:
        """Import a graph that is to take again what it makes of its state."""

    def attempt(self, way: Callable[[], list[Operand]]) -> list[Operand] | None:
        """Try to unroll a loop."""

    def note_training(self) -> None:
        """Remember that the node being imported computes as in training."""


class Node:
    """One node of an ONNX graph.

    Reading an attribute takes it: one that is left over at the end is one that its function does
    not know. One that the model leaves out has the default of ONNX's schema; where the schema has
    none, it has the one that the reader is given, or is required.

    Attributes:
        proto: the node as the file has it.
        full_name: the ONNX operator, with its domain if that is not the standard one.
        type: the ONNX operator.
        opset: the version of the operator set that defines what it means.
        inputs: the operands that it reads; `None` where an optional one is left out. Where they are
            quantized, the operations that are added read the integers, as ONNX's operators do.
        outputs: the names of what it makes; empty where an optional one is left out.
        names: names for the operations that it becomes.
    """

    __slots__ = (
        "_attributes",
        "_builder",
        "_domain",
        "_has_added",
        "_on_reals",
        "_opsets",
        "_surroundings",
        "full_name",
        "inputs",
        "names",
        "opset",
        "outputs",
        "proto",
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
        surroundings: Surroundings,
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
        self._surroundings = surroundings
        self._has_added = False
        self._on_reals = False
        self._opsets = opsets

    def __getitem__(self, index: int) -> Operand:
        """A required input.

        Raises:
            ModelError: it is left out.
        """
        operand = self.optional(index)
        if operand is None:
            raise ModelError(f"input {index} is required")
        return operand

    def optional(self, index: int) -> Operand | None:
        """An input that may be left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def all_inputs(self) -> list[Operand]:
        """The inputs of an operator that takes any number of them, at least one."""
        return [self[index] for index in range(max(1, len(self.inputs)))]

    def add(self, operator: type[Operator], *arguments: object, **named: Any) -> Operand:
        """Append an operation that makes one output and return that output.

        If it is known what the operation computes, a constant takes its place.
        """
        return self.add_all(operator, *arguments, **named)[0]

    def add_all(
        self, operator: type[Operator], *arguments: object, **named: Any
    ) -> tuple[Operand, ...]:
        """Append an operation that makes any number of outputs and return them."""
        if not self._on_reals:
            arguments, named = self._on_integers(operator, arguments, named)
        name = next(self.names)
        # Mostly the first operation is the only one, and makes what the node is to make.
        outputs = () if self._has_added else self.outputs[:1]
        results = self._builder.add_all(operator, *arguments, name=name, outputs=outputs, **named)
        if self._has_added and len(results) == 1:
            inner = {results[0]: f"{name}.{operator.type.lower()}"}
            results = tuple(self._builder.rename(inner, len(self._builder.operations) - 1).values())
        self._has_added = True
        known = known_outputs(self._builder.operations[-1])
        if known is None:
            return results
        self._builder.operations.pop()
        return known

    def _on_integers(
        self, operator: type[Operator], arguments: tuple[object, ...], named: dict[str, Any]
    ) -> tuple[tuple[object, ...], dict[str, Any]]:
        """The arguments of an operation that reads integers, whatever these stand for.

        What moves or compares them may as well read what they stand for, and keeps it.
        """
        operands = [part for value in (*arguments, *named.values()) for part in _operands(value)]
        if all(operand.type.quantization is None for operand in operands):
            return arguments, named
        operation = operator("", operator.bind("", arguments, named))
        if not operation.quantized_inputs():
            return arguments, named
        moved = operation.moved_quantization()
        if moved is not None and operator.moves:
            return arguments, named
        if moved is not None and operator in _ORDERING:
            return arguments, {**named, "quantization": moved}
        return tuple(map(self._bare, arguments)), {n: self._bare(v) for n, v in named.items()}

    def _bare(self, argument: object) -> object:
        """An argument without quantization: the integers of an operand."""
        if isinstance(argument, Operand):
            if argument.type.quantization is None:
                return argument
            if argument.is_constant:
                return Operand(argument.name, _plain(argument), argument.content)
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
        """Append what another operator of ONNX does with this one's attributes.

        Where inputs are quantized, it computes on what they stand for.

        Args:
            type: one of the standard operators, which makes one output.
            inputs: what it reads.
            opset: the version that defines it; that of the model if left out.
            attributes: integers in place of the attributes that have not been read yet.
        """
        opsets = self._opsets if opset is None else {**self._opsets, "": opset}
        proto = NodeProto(op_type=type, output=self.outputs)
        if attributes:
            proto.attribute.extend(starmap(make_attribute, attributes.items()))
        else:
            proto.attribute.extend(self._attributes.values())
            self._attributes = {}
        surroundings = self._surroundings
        node = Node(proto, opsets, inputs, self.outputs, self._builder, self.names, surroundings)
        node._on_reals, node._has_added = True, self._has_added
        results = TABLE[type](node)
        node.finish()
        self._has_added = node._has_added
        first = results if isinstance(results, Operand) else results[0]
        assert first is not None, "the first output is never left out"
        return first

    def rounded(self, real: Operand, quantization: Quantization, dtype: ElementType) -> Operand:
        """What an operation makes, as integers that stand for it.

        If it computes on integers of the type, it is the one that rounds.
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
        """An operand that holds an array."""
        return constant(value, next(self.names))

    def integer(self, name: str, default: int | None = None) -> int:
        """An integer attribute."""
        attribute = self._take(name, AttributeProto.INT)
        return _required_value(name, default) if attribute is None else attribute.i

    def flag(self, name: str, default: bool | None = None) -> bool:
        """An integer attribute that stands for yes or no."""
        value = self.integer(name, default)
        if value not in (0, 1):
            raise ModelError(f"{name} is {value}, but must be 0 or 1")
        return bool(value)

    def real(self, name: str, default: float | None = None) -> float:
        """A floating-point attribute."""
        attribute = self._take(name, AttributeProto.FLOAT)
        return _required_value(name, default) if attribute is None else attribute.f

    def text(self, name: str, default: str | None = None) -> str:
        """A string attribute."""
        attribute = self._take(name, AttributeProto.STRING)
        if attribute is None:
            return _required_value(name, default)
        return attribute.s.decode("utf-8", "backslashreplace")

    def integers(self, name: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """An attribute that is a list of integers."""
        value = self.optional_integers(name)
        return _required_value(name, default) if value is None else value

    def optional_integers(self, name: str) -> tuple[int, ...] | None:
        """A list of integers; `None` where the model leaves it out and it has no default."""
        attribute = self._take(name, AttributeProto.INTS)
        return None if attribute is None else tuple(attribute.ints)

    def reals(self, name: str, default: tuple[float, ...] | None = None) -> tuple[float, ...]:
        """A list of floating-point numbers."""
        attribute = self._take(name, AttributeProto.FLOATS)
        return _required_value(name, default) if attribute is None else tuple(attribute.floats)

    def texts(self, name: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """A list of strings."""
        attribute = self._take(name, AttributeProto.STRINGS)
        if attribute is None:
            return _required_value(name, default)
        return tuple(value.decode("utf-8", "backslashreplace") for value in attribute.strings)

    def value(self, name: str) -> object | None:
        """An attribute of numbers, text or a tensor, whatever it is; `None` if it is left out.

        Raises:
            ModelError: it is of another type.
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
        """A graph; required."""
        return _required_value(name, self._take(name, AttributeProto.GRAPH)).g

    def run_graph(self, graph: GraphProto, *arguments: Operand) -> list[Operand]:
        """Append the operations of a graph that is an attribute; returns its outputs."""
        return self._surroundings.run_graph(graph, arguments)

    def run_body(self, graph: GraphProto, types: Sequence[TensorType]) -> Body:
        """A graph that is an attribute as a model of its own, for inputs of these types."""
        return self._surroundings.run_body(graph, types)

    def state_body(
        self,
        graph: GraphProto,
        before: Sequence[TensorType],
        state: Sequence[Operand],
        after: Sequence[TensorType],
        skipped: int,
    ) -> Body:
        """The same for a graph that takes again what it makes of its state.

        Args:
            graph: the graph.
            before: the types of what it takes before the state.
            state: the first state.
            after: the types of what it takes after it.
            skipped: how many values it makes before the next state.
        """
        types = [operand.type for operand in state]
        return self._surroundings.state_body(graph, before, types, after, skipped)

    def attempt(self, way: Callable[[], list[Operand]]) -> list[Operand] | None:
        """The results of a way to unroll a loop; `None`, with nothing added, if it has no end."""
        return self._surroundings.attempt(way)

    def note_training(self) -> None:
        """Have a warning about the model say that the node computes as in training."""
        self._surroundings.note_training()

    def control(self, make: Callable[[str], ControlFlow]) -> tuple[Operand, ...]:
        """Append an operation of control flow, given how to make it by its name."""
        return self._builder.insert(make(next(self.names)))

    def tensor(self, name: str) -> Array:
        """A tensor; required."""
        return self._surroundings.array(
            _required_value(name, self._take(name, AttributeProto.TENSOR)).t
        )

    def tensor_operand(self, name: str) -> Operand:
        """The operand for a tensor, of numbers or strings; required."""
        attribute = _required_value(name, self._take(name, AttributeProto.TENSOR))
        return self._surroundings.constant(attribute.t, self.outputs[0])

    def strings(self, values: Sequence[str], shape: Sequence[int]) -> Operand:
        """An operand that holds strings."""
        encoded = [value.encode() for value in values]
        tensor = TensorProto(data_type=TensorProto.STRING, dims=shape, string_data=encoded)
        return self._surroundings.constant(tensor, self.outputs[0])

    def sparse_tensor(self, name: str) -> Array:
        """A tensor that is stored without its zeros; required."""
        attribute = _required_value(name, self._take(name, AttributeProto.SPARSE_TENSOR))
        return self._surroundings.dense(attribute.sparse_tensor)

    def has(self, name: str) -> bool:
        """Tell whether there is an attribute of the name, not yet read."""
        return name in self._attributes

    def ignore(self, *names: str) -> None:
        """Attributes that change nothing in what is computed here."""
        for name in names:
            self._attributes.pop(name, None)

    def finish(self) -> None:
        """Refuse a node with an attribute that its function does not know.

        Raises:
            UnsupportedError: there is one.
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
    """The operands in an argument."""
    parts = argument if isinstance(argument, list | tuple) else (argument,)
    return [part for part in parts if isinstance(part, Operand)]


def _plain(operand: Operand) -> TensorType:
    return replace(operand.type, quantization=None)


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
    """The axis counted from the front; `ModelError` if a tensor of the rank does not have it."""
    try:
        return axis_in(axis, rank)
    except ValueError as error:
        raise ModelError(str(error)) from None


def bounded(count: int) -> int:
    """The number of elements that a constant in place of a node needs, if that is not too many.

    Raises:
        UnsupportedError: it is.
    """
    if count > _MAX_CONSTANT:
        raise UnsupportedError(f"standard operators would need a constant of {count} elements")
    return count


def only(name: str, value: T, *supported: T) -> T:
    """An attribute's value, if it is one that can be expressed.

    Raises:
        UnsupportedError: it is another one; the message names the attribute and the value.
    """
    if value not in supported:
        known = " or ".join(map(str, supported))
        raise UnsupportedError(f"{name} {value} cannot be expressed, only {known}")
    return value
