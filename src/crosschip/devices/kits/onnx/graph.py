"""Writing an ONNX model, with its large constants beside it instead of inside."""

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
"""The version of the standard operators that converters write."""
CONTRIBUTED = "com.microsoft"
"""The domain of the operators that ONNX Runtime has beside ONNX's."""
_IR_VERSION = 10
_OWN_BYTES = 2**17
"""Constants of less than so many bytes are in the graph of the body that reads them."""
_STANDARD_DOMAINS = ("", "ai.onnx")


class Graph:
    """An ONNX graph in the making; knows the name that stands for each operand.

    Names are unique in a model. The constants of a graph that a node holds are those of the graph
    around it all: ONNX Runtime does not find them again if they are in graphs of nodes. But it
    hands each of them in whenever it runs the node. So bodies of control flow, which it never has
    to find again, have their own, but for large ones, which would be copied.

    Args:
        inputs: what the graph reads.
        around: the graph of the node that holds this one, if a node does.
        opset: the version of the standard operators that its nodes are written in.
        types: the types of operands that are no tensors, as ONNX writes them.
        branches: whether its reader runs `If` quickly; as the graph around it, if there is one.
        body: whether it is that of a body of control flow.

    Attributes:
        inputs: what the graph reads.
        branches: whether a node may choose between graphs for the sake of speed.
        label: what the engine's messages call the nodes that are added from now on.
    """

    def __init__(
        self,
        inputs: Iterable[Operand],
        around: Graph | None = None,
        *,
        opset: int = OPSET,
        types: Mapping[Operand, TypeProto] | None = None,
        branches: bool = False,
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
        # The places of the nodes that make values.
        self._node_of_value: dict[str, int] = {}
        self._spared: list[int] = []
        self._once: dict[Hashable, str] = {}
        self._whole: Graph = self if around is None else around._whole
        self._home: Graph = self if around is None or body else around._home
        self.branches: bool = branches if around is None else around.branches
        self.label: str = "" if around is None else around.label
        self._external: dict[str, Array] = {}
        self._count = 0
        self._constants = 0
        self._end = 0
        for index, operand in enumerate(self.inputs):
            name = f"input{index}" if around is None else self._new_name()
            self._names[operand] = name
            self._proto.input.append(self._value_info(name, operand, named=around is None))

    def __getitem__(self, operand: Operand) -> str:
        """The name that stands for an operand; a constant is added when first asked for."""
        name = self._names.get(operand)
        if name is None:
            elements = operand.value
            assert elements is not None, "an operation stands after those that it reads"
            name = self._names[operand] = self.constant(elements)
        return name

    def stand_for(self, operand: Operand, name: str) -> None:
        """Say what stands for an operand that is made elsewhere."""
        self._names[operand] = name

    def define(self, operation: Operation, names: Sequence[str]) -> None:
        """Say what stands for the outputs of an operation."""
        self._names.update(zip(operation.outputs, names, strict=True))

    def add(self, type: str, *inputs: str, **attributes: Any) -> str:
        """Add a node that makes one output and return that output's name.

        An input that is left out is an empty string, an attribute that is left out `None`.
        """
        return self.add_all(type, 1, *inputs, **attributes)[0]

    def add_all(self, type: str, count: int, *inputs: str, **attributes: Any) -> list[str]:
        """Like `add`, for a node with any number of outputs."""
        while inputs and not inputs[-1]:
            # ONNX Runtime counts what is left out, too, when it looks for nodes that it can fuse.
            inputs = inputs[:-1]
        outputs = [self._new_name() for _ in range(count)]
        self._node_of_value.update(dict.fromkeys(outputs, len(self._proto.node)))
        label = self._label(outputs[0])
        self._proto.node.append(make_node(type, inputs, outputs, label, **attributes))
        return outputs

    def add_contributed(self, type: str, *inputs: str, **attributes: Any) -> str:
        """Like `add`, for an operator that ONNX Runtime has beside ONNX's: only it reads it."""
        return self.add_all_contributed(type, 1, *inputs, **attributes)[0]

    def add_all_contributed(
        self, type: str, count: int, *inputs: str, **attributes: Any
    ) -> list[str]:
        """Like `add_contributed`, for a node with any number of outputs."""
        self._whole.require(CONTRIBUTED, 1)
        return self.add_all(type, count, *inputs, domain=CONTRIBUTED, **attributes)

    def branch(
        self, operation: Operation, condition: str, *ways: Callable[[Graph], Sequence[str]]
    ) -> list[str]:
        """The outputs of an operation in the first way if a condition holds, else in the second."""
        graphs = []
        for way in ways:
            inner = Graph((), self)
            inner.define(operation, way(inner))
            graphs.append(inner.with_outputs(operation.outputs))
        then_branch, else_branch = graphs
        branches = {"then_branch": then_branch, "else_branch": else_branch}
        return self.add_all("If", len(operation.outputs), condition, **branches)

    def once(self, key: Hashable, make: Callable[[], str]) -> str:
        """What is the same wherever it is asked for by a key: made the first time."""
        if key not in self._once:
            self._once[key] = make()
        return self._once[key]

    def constant(self, value: Array) -> str:
        """Add a constant; a large one is not copied."""
        whole = self._whole
        most = EXTERNAL_BYTES if self._home is whole else _OWN_BYTES
        is_small = value.nbytes < most
        tensor = (self._home if is_small else whole)._tensor(value)
        if is_small:
            tensor.raw_data = value.tobytes()
        else:
            tensor.data_location = TensorProto.EXTERNAL
            start, whole._end = whole._end, whole._end + aligned(value.nbytes)
            places = {"location": "memory", "offset": str(start), "length": str(value.nbytes)}
            for key, place in places.items():
                tensor.external_data.add(key=key, value=place)
            whole._external[tensor.name] = np.asarray(value, order="C")
        return tensor.name

    def packed(self, value: Array) -> str:
        """Add a constant of integers of four bits, two of them in a byte.

        ONNX Runtime does not take them as they are in memory.
        """
        halves = np.append(value.ravel().view(np.uint8) & 15, np.zeros(value.size % 2, np.uint8))
        tensor = self._home._tensor(value)
        tensor.raw_data = (halves[::2] | halves[1::2] << 4).tobytes()
        return tensor.name

    def _tensor(self, value: Array) -> TensorProto:
        """A new tensor, without its elements yet."""
        name = f"constant{self._whole._constants}"
        self._whole._constants += 1
        code = code_of(value.dtype)
        return self._proto.initializer.add(name=name, data_type=code, dims=value.shape)

    def int64(self, values: Iterable[int]) -> str:
        """Add a constant list of integers."""
        return self.constant(np.array([*values], np.int64))

    def scalar(self, value: float, like: Operand) -> str:
        """Add one number of the element type of an operand; infinite beyond its range."""
        with np.errstate(over="ignore"):
            return self.constant(np.asarray(value, like.type.element_type.dtype))

    def indices(self, operand: Operand | None) -> str:
        """A list of integers that a parameter holds, in the type that ONNX wants them in."""
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
        """The shape of an operand, or some of its sizes.

        ONNX Runtime converts an integer to a float once for each reader of the float: who wants to
        know the shape alone reads the integers.
        """
        name = self[operand]
        node = self.maker(name)
        if node is not None and node.op_type == "DequantizeLinear":
            name = node.input[0]
        return self.add("Shape", name, start=start, end=end)

    def single(self, operand: Operand) -> str:
        """The only element of an operand, without axes."""
        name = self[operand]
        return name if operand.type.shape == () else self.add("Reshape", name, self.int64([]))

    def cast(self, name: str, dtype: np.typing.DTypeLike) -> str:
        """Convert a value to another element type."""
        return self.add("Cast", name, to=code_of(np.dtype(dtype)))

    def finish(self, outputs: Iterable[Operand]) -> OnnxModel:
        """The graph as a model whose outputs stand for these operands, in order."""
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
        """The graph, with outputs that stand for these operands, in order."""
        used_names: set[str] = set()
        for operand in outputs:
            name = self[operand]
            # ONNX lets no input, constant or other output be an output.
            if name not in self._node_of_value or name in used_names:
                name = self.add("Identity", name)
            used_names.add(name)
            self._proto.output.append(self._value_info(name, operand))
        self._leave_out(used_names)
        return self._proto

    def maker(self, name: str) -> NodeProto | None:
        """The node of this graph that makes a value; `None` if none does."""
        place = self._node_of_value.get(name)
        return None if place is None else self._proto.node[place]

    def spare(self, name: str) -> None:
        """Leave the node out that makes a value if in the end nothing reads what it makes."""
        self._spared.append(self._node_of_value[name])

    def _leave_out(self, outputs: set[str]) -> None:
        """Leave out nodes that are spared: ONNX Runtime runs what nobody needs."""
        if not self._spared:
            return
        read = outputs.union(_read_in(self._proto))
        for place in sorted(set(self._spared), reverse=True):
            if read.isdisjoint(self._proto.node[place].output):
                del self._proto.node[place]

    def _new_name(self) -> str:
        self._whole._count += 1
        return f"value{self._whole._count - 1}"

    def add_node(self, node: NodeProto) -> None:
        """Add a node that is there already, with names that are the graph's own."""
        node.name = self._label(next(filter(None, node.output)))
        self._node_of_value.update(dict.fromkeys(node.output, len(self._proto.node)))
        self._proto.node.append(node)

    def add_initializer(self, tensor: TensorProto) -> None:
        """Add a constant that is there already, by a name that is the graph's own."""
        self._proto.initializer.append(tensor)

    def add_function(self, function: FunctionProto) -> FunctionProto:
        """Add a function that nodes call; returns the one that already has its name, if any."""
        key = function.domain, function.name, function.overload
        return self._functions.setdefault(key, function)

    def require(self, domain: str, version: int) -> int:
        """Ask for a version of the operators of a domain; returns the one that there is.

        The standard operators are of the graph's own version: whoever adds others has seen to it
        that they mean the same in that.
        """
        if domain in _STANDARD_DOMAINS:
            return version
        return self._imports.setdefault(domain, version)

    def new_prefix(self) -> str:
        """A beginning for names that no other name begins with."""
        self._prefixes += 1
        return f"extension{self._prefixes - 1}."

    def _label(self, name: str) -> str:
        """The name of a node in the engine's messages."""
        return f"{self.label if self.label.isprintable() else ascii(self.label)}.{name}"

    def _value_info(self, name: str, operand: Operand, *, named: bool = False) -> ValueInfoProto:
        if operand.type.element_type is ElementType.OBJECT:
            return ValueInfoProto(name=name, type=self._types[operand])
        return _value_info(name, operand.type, named=named)


def _read_in(graph: GraphProto) -> Iterator[str]:
    """The names of the values that nodes of a graph, and of the graphs in these, read."""
    for node in graph.node:
        yield from node.input
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _read_in(attribute.g)
                yield from (value.name for value in attribute.g.output)


def _value_info(name: str, type: TensorType, *, named: bool) -> ValueInfoProto:
    """The description of a value.

    Args:
        name: the value's.
        type: its type.
        named: whether open sizes have their names. Only those of inputs are known to be equal if
            their names are, and by them ONNX Runtime finds out which others are.
    """
    known = None
    if type.shape is not None:
        known = [
            size
            if isinstance(size, int)
            else name_of(size)
            if named and not is_unknown(size)
            else None
            for size in type.shape
        ]
    return ValueInfoProto(name=name, type=tensor_type(CODES[type.element_type], known))
