"""Construction of ONNX models with large constants stored outside of the protocol buffer."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from crosschip.devices.kits.onnx.model import EXTERNAL_BYTES, OnnxModel, aligned
from crosschip.ir import Array, ElementType, Operand, Operation, TensorType
from crosschip.ir.dimension import is_unknown, name_of
from crosschip.onnx_messages import (
    CODES,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    code_of,
    make_node,
    operator_sets,
    tensor_type,
)

OPSET = 21
"""The version of the standard operators that converters use."""
CONTRIBUTED = "com.microsoft"
"""The domain of ONNX Runtime's additional operators."""
_IR_VERSION = 10
_BODY_CONSTANT_BYTES = 2**17
"""Smaller constants are stored in the body that reads them."""
_STANDARD_DOMAINS = ("", "ai.onnx")


class Graph:
    """An ONNX graph under construction, with the value name of each operand.

    Names are unique in a model. ONNX Runtime fuses nodes only if their constants are in the
    outermost graph, so subgraphs store them there. But it passes each outer constant to a node
    whenever that runs. So bodies of control flow, which have nothing to fuse, store their own,
    except large ones, which would be copied.

    Args:
        inputs: the inputs.
        parent: the graph whose node contains this one, if any.
        opset: the version of the standard operators.
        types: the ONNX types of operands that are no tensors.
        branches: whether the engine runs `If` quickly; inherited from the parent.
        workarounds: whether converters add nodes for values that ONNX Runtime computes unlike
            ONNX's definitions: NaN, integers that overflow, tensors without elements; inherited
            from the parent.
        body: whether this is a body of control flow.

    Attributes:
        inputs: the inputs.
        branches: whether converters may add `If` nodes for speed.
        workarounds: whether converters add nodes for values that ONNX Runtime computes wrongly.
        label: the prefix of the names of nodes that are added.
    """

    def __init__(
        self,
        inputs: Iterable[Operand],
        parent: Graph | None = None,
        *,
        opset: int = OPSET,
        types: Mapping[Operand, TypeProto] | None = None,
        branches: bool = False,
        workarounds: bool = True,
        body: bool = False,
    ) -> None:
        self.inputs = tuple(inputs)
        self._proto = GraphProto(name="crosschip")
        self._opset = opset
        self._types = types or {}
        self._imports: dict[str, int] = {}
        self._functions: dict[tuple[str, str, str], FunctionProto] = {}
        self._prefixes = 0
        self._names: dict[Operand, str] = {}
        self._node_of_value: dict[str, int] = {}  # the index of the producer of each value
        self._removable: list[int] = []
        self._once: dict[Hashable, str] = {}
        self._root: Graph = self if parent is None else parent._root
        self._constant_owner: Graph = self if parent is None or body else parent._constant_owner
        self.branches: bool = branches if parent is None else parent.branches
        self.workarounds: bool = workarounds if parent is None else parent.workarounds
        self.label: str = "" if parent is None else parent.label
        self._external: dict[str, Array] = {}
        self._count = 0
        self._constants = 0
        self._end = 0
        for index, operand in enumerate(self.inputs):
            name = f"input{index}" if parent is None else self._new_name()
            self._names[operand] = name
            self._proto.input.append(self._value_info(name, operand, named=parent is None))

    def __getitem__(self, operand: Operand) -> str:
        """Return the value name of an operand; add a constant on its first use."""
        name = self._names.get(operand)
        if name is None:
            elements = operand.value
            assert elements is not None, "operations are in topological order"
            name = self._names[operand] = self.constant(elements)
        return name

    def bind(self, operand: Operand, name: str) -> None:
        """Set the value name of an operand that another node or graph produces."""
        self._names[operand] = name

    def define(self, operation: Operation, names: Sequence[str]) -> None:
        """Set the value names of an operation's outputs."""
        self._names.update(zip(operation.outputs, names, strict=True))

    def add(self, type: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output and return the output's name.

        Omitted inputs are empty strings, omitted attributes `None`.
        """
        return self.add_all(type, 1, *inputs, **attributes)[0]

    def add_all(self, type: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        """Like `add`, for any number of outputs."""
        while inputs and not inputs[-1]:
            # ONNX Runtime's fusions count omitted inputs, too.
            inputs = inputs[:-1]
        outputs = [self._new_name() for _ in range(count)]
        self._node_of_value.update(dict.fromkeys(outputs, len(self._proto.node)))
        label = self._label(outputs[0])
        self._proto.node.append(make_node(type, inputs, outputs, label, **attributes))
        return outputs

    def add_contributed(self, type: str, *inputs: str, **attributes: Any) -> str:
        """Like `add`, for an operator that only ONNX Runtime supports."""
        return self.add_all_contributed(type, 1, *inputs, **attributes)[0]

    def add_all_contributed(
        self, type: str, count: int, *inputs: str, **attributes: Any
    ) -> list[str]:
        """Like `add_contributed`, for any number of outputs."""
        self._root.require(CONTRIBUTED, 1)
        return self.add_all(type, count, *inputs, domain=CONTRIBUTED, **attributes)

    def branch(
        self, operation: Operation, condition: str, *branches: Callable[[Graph], Sequence[str]]
    ) -> list[str]:
        """Add an `If` node with two alternatives of an operation; return its outputs."""
        graphs = []
        for build in branches:
            inner = Graph((), self)
            inner.define(operation, build(inner))
            graphs.append(inner.with_outputs(operation.outputs))
        then_branch, else_branch = graphs
        bodies = {"then_branch": then_branch, "else_branch": else_branch}
        return self.add_all("If", len(operation.outputs), condition, **bodies)

    def once(self, key: Hashable, make: Callable[[], str]) -> str:
        """Return the value with a key; add it on the first call."""
        if key not in self._once:
            self._once[key] = make()
        return self._once[key]

    def constant(self, value: Array) -> str:
        """Add a constant; large ones are not copied."""
        root = self._root
        max_bytes = EXTERNAL_BYTES if self._constant_owner is root else _BODY_CONSTANT_BYTES
        is_small = value.nbytes < max_bytes
        tensor = (self._constant_owner if is_small else root)._tensor(value)
        if is_small:
            tensor.raw_data = value.tobytes()
        else:
            tensor.data_location = TensorProto.EXTERNAL
            start, root._end = root._end, root._end + aligned(value.nbytes)
            location = {"location": "memory", "offset": str(start), "length": str(value.nbytes)}
            for key, entry in location.items():
                tensor.external_data.add(key=key, value=entry)
            root._external[tensor.name] = np.asarray(value, order="C")
        return tensor.name

    def int4_constant(self, value: Array) -> str:
        """Add a constant of 4-bit integers, two per byte.

        The elements of the array are one per byte, which ONNX does not allow.
        """
        halves = np.append(value.ravel().view(np.uint8) & 15, np.zeros(value.size % 2, np.uint8))
        tensor = self._constant_owner._tensor(value)
        tensor.raw_data = (halves[::2] | halves[1::2] << 4).tobytes()
        return tensor.name

    def _tensor(self, value: Array) -> TensorProto:
        """Add a tensor without elements."""
        name = f"constant{self._root._constants}"
        self._root._constants += 1
        code = code_of(value.dtype)
        return self._proto.initializer.add(name=name, data_type=code, dims=value.shape)

    def int64(self, values: Iterable[int]) -> str:
        """Add a constant list of int64."""
        return self.constant(np.array([*values], np.int64))

    def scalar(self, value: float, like: Operand) -> str:
        """Add a scalar constant of an operand's element type; infinite beyond its range."""
        with np.errstate(over="ignore"):
            return self.constant(np.asarray(value, like.type.element_type.dtype))

    def indices(self, operand: Operand | None) -> str:
        """Return an integer parameter as a list of int64; an empty name if it is omitted."""
        if operand is None:
            return ""
        if operand.value is not None:
            return self.int64(operand.value.ravel().tolist())
        name, shape = self[operand], operand.type.shape
        if operand.type.element_type is not ElementType.INT64:
            name = self.cast(name, np.int64)
        is_list = shape is not None and len(shape) == 1
        return name if is_list else self.add("Reshape", name, self.int64([-1]))

    def sizes(self, operand: Operand, start: int | None = None, end: int | None = None) -> str:
        """Return the shape of an operand, or a range of it.

        The shape of a dequantized value is read from the integers, so that the float value has no
        further reader: ONNX Runtime dequantizes once per reader.
        """
        name = self[operand]
        node = self.producer(name)
        if node is not None and node.op_type == "DequantizeLinear":
            name = node.input[0]
        return self.add("Shape", name, start=start, end=end)

    def as_scalar(self, operand: Operand) -> str:
        """Return a one-element operand without axes."""
        name = self[operand]
        return name if operand.type.shape == () else self.add("Reshape", name, self.int64([]))

    def cast(self, name: str, dtype: np.typing.DTypeLike) -> str:
        """Add a cast to an element type."""
        return self.add("Cast", name, to=code_of(np.dtype(dtype)))

    def finish(self, outputs: Iterable[Operand]) -> OnnxModel:
        """Return the graph as a model with these outputs, in order."""
        proto = self.with_outputs(outputs)
        imports = {"": self._opset, **self._imports}
        model = ModelProto(
            ir_version=_IR_VERSION,
            graph=proto,
            opset_import=operator_sets(imports),
            functions=self._functions.values(),
        )
        return OnnxModel(model.SerializeToString(), self._external)

    def with_outputs(self, outputs: Iterable[Operand]) -> GraphProto:
        """Return the graph with these outputs, in order."""
        used_names: set[str] = set()
        for operand in outputs:
            name = self[operand]
            # In ONNX, an output must be a node's output, and occur only once.
            if name not in self._node_of_value or name in used_names:
                name = self.add("Identity", name)
            used_names.add(name)
            self._proto.output.append(self._value_info(name, operand))
        self._remove_unread(used_names)
        return self._proto

    def producer(self, name: str) -> NodeProto | None:
        """Return the node of this graph that produces a value, or `None`."""
        index = self._node_of_value.get(name)
        return None if index is None else self._proto.node[index]

    def remove_if_unread(self, name: str) -> None:
        """Mark the producer of a value for removal if nothing reads its outputs in the end."""
        self._removable.append(self._node_of_value[name])

    def _remove_unread(self, outputs: set[str]) -> None:
        """Remove marked nodes without readers: ONNX Runtime would run them."""
        if not self._removable:
            return
        read = outputs.union(_values_read(self._proto))
        for index in sorted(set(self._removable), reverse=True):
            if read.isdisjoint(self._proto.node[index].output):
                del self._proto.node[index]

    def _new_name(self) -> str:
        self._root._count += 1
        return f"value{self._root._count - 1}"

    def add_node(self, node: NodeProto) -> None:
        """Add an existing node whose value names are unique in the graph."""
        node.name = self._label(next(filter(None, node.output)))
        self._node_of_value.update(dict.fromkeys(node.output, len(self._proto.node)))
        self._proto.node.append(node)

    def add_initializer(self, tensor: TensorProto) -> None:
        """Add an existing constant whose name is unique in the graph."""
        self._proto.initializer.append(tensor)

    def add_function(self, function: FunctionProto) -> FunctionProto:
        """Add a function that nodes call; return the existing one of its name, if any."""
        key = function.domain, function.name, function.overload
        return self._functions.setdefault(key, function)

    def require(self, domain: str, version: int) -> int:
        """Require a version of a domain's operators; return the version that the graph uses.

        The standard operators have the graph's version. Callers ensure that nodes of other versions
        mean the same in it.
        """
        if domain in _STANDARD_DOMAINS:
            return version
        return self._imports.setdefault(domain, version)

    def new_prefix(self) -> str:
        """Return a prefix that no other name has."""
        self._prefixes += 1
        return f"extension{self._prefixes - 1}."

    def _label(self, name: str) -> str:
        """Return the name of a node for the engine's messages."""
        return f"{self.label if self.label.isprintable() else ascii(self.label)}.{name}"

    def _value_info(self, name: str, operand: Operand, *, named: bool = False) -> ValueInfoProto:
        if operand.type.element_type is ElementType.OBJECT:
            return ValueInfoProto(name=name, type=self._types[operand])
        return _value_info(name, operand.type, named=named)


def _values_read(graph: GraphProto) -> Iterator[str]:
    """Yield the values that the nodes of a graph and its subgraphs read."""
    for node in graph.node:
        yield from node.input
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _values_read(attribute.g)
                yield from (value.name for value in attribute.g.output)


def _value_info(name: str, type: TensorType, *, named: bool) -> ValueInfoProto:
    """Return the description of a value.

    Args:
        name: the name of the value.
        type: the type.
        named: whether dynamic dimensions keep their names. Only equal names of inputs are known to
            mean equal sizes; ONNX Runtime derives the others.
    """
    shape = None
    if type.shape is not None:
        shape = [
            size
            if isinstance(size, int)
            else name_of(size)
            if named and not is_unknown(size)
            else None
            for size in type.shape
        ]
    return ValueInfoProto(name=name, type=tensor_type(CODES[type.element_type], shape))
