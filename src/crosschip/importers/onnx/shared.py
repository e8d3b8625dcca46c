"""State that all graphs of a model share, and locations for messages."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping

from crosschip.importers.body import OpenAxes
from crosschip.importers.onnx.functions import key_of
from crosschip.importers.onnx.grouping import makes_no_tensor
from crosschip.importers.onnx.schemas import STANDARD_DOMAINS, domain_of
from crosschip.importers.onnx.tensors import TensorReader, text, texts
from crosschip.importers.onnx.unrolling import Unrolling
from crosschip.ir import (
    Builder,
    Dim,
    Dimension,
    ModelFileError,
    Operand,
    Origin,
    Shape,
    symbol,
    unknown,
)
from crosschip.onnx_messages import (
    FunctionProto,
    NodeProto,
    OperatorSetIdProto,
    TensorProto,
    TensorShapeProto,
    TypeProto,
)

_NOT_IN_A_NAME = re.compile(r"[^\w.]+")


class Sizes:
    """Named dimensions of one model: equal names are the same dimension."""

    def __init__(self) -> None:
        self._symbols: dict[str, Dimension] = {}
        self._names: set[str] = set()

    def shape(self, proto: TensorShapeProto) -> Shape:
        """Return the shape that a model declares for an input."""
        return tuple(map(self._size, proto.dim))

    def _size(self, proto: TensorShapeProto.Dimension) -> Dim:
        if proto.HasField("dim_value"):
            return proto.dim_value if proto.dim_value >= 0 else unknown()
        return self._named_dimension(text(proto.dim_param))

    def _named_dimension(self, name: str) -> Dimension:
        """Return the dimension for a name, which is changed as little as dimension syntax requires.

        A name without a letter or digit, such as `?`, is an unknown size.
        """
        if name not in self._symbols:
            stem = _NOT_IN_A_NAME.sub("_", name).strip("_")
            if not stem:
                return unknown()
            if not (stem[0].isalpha() or stem[0] == "_"):
                stem = f"size_{stem}"
            free = stem if stem not in self._names else f"{stem}_{len(self._names)}"
            self._names.add(free)
            self._symbols[name] = symbol(free)
        return self._symbols[name]


class Shared:
    """State that all graphs of one model share.

    Attributes:
        ir_version: the version of the file format.
        reader: reads tensors of the file.
        functions: the functions that the model defines.
        sizes: the named dimensions.
        strings: the string tensors that operands stand for. A model has no constants of strings:
            the extension operations that read them include them.
        functions_make_others: whether a function may return something other than a tensor.
        containers: the types of operands that are no tensors.
        settled: operands that must not be renamed.
        unrolling: counts the nodes of unrolled loops.
        open_axes: the dynamic axes of loop states.
        operation_names: the names of operations, which are unique across all graphs.
        in_training: the names of the nodes that compute as in training, in order.
    """

    def __init__(
        self,
        ir_version: int,
        reader: TensorReader,
        functions: Iterable[FunctionProto],
        operation_names: set[str],
    ) -> None:
        self.ir_version = ir_version
        self.reader = reader
        self.functions: dict[tuple[str, str, str], FunctionProto] = {}
        for function in functions:
            key = text(function.domain), text(function.name), text(function.overload)
            if self.functions.setdefault(key, function) is not function:
                raise ModelFileError(f"has two functions called {'.'.join(filter(None, key))!r}")
        bodies = (function.node for function in self.functions.values())
        self.functions_make_others = any(map(makes_no_tensor, bodies))
        self.sizes = Sizes()
        self.strings: dict[Operand, TensorProto] = {}
        self.containers: dict[Operand, TypeProto] = {}
        self.settled: set[Operand] = set()
        self.unrolling = Unrolling()
        self.open_axes: OpenAxes = {}
        self.operation_names = operation_names
        self.in_training: dict[str, None] = {}
        self._counts: dict[str, int] = {}

    def function(self, node: NodeProto) -> FunctionProto | None:
        """Return the function of the model that a node calls; `None` if it calls none."""
        if not self.functions:
            return None
        return self.functions.get(key_of(node))

    def names(self, stem: str, number: int) -> Iterator[str]:
        """Yield names for the operations of a node, the first being the node's."""
        if stem in self.operation_names or not stem or stem.endswith("/"):
            stem = f"{stem}_{number}"
        if stem not in self.operation_names:
            yield stem
        for count in itertools.count(self._counts.get(stem, 0) + 1):
            name = f"{stem}.{count}"
            self._counts[stem] = count
            if name not in self.operation_names:
                yield name

    def rename(
        self, builder: Builder, names: Mapping[Operand | None, str], start: int
    ) -> Mapping[Operand, Operand]:
        """Give a node's results the names of the file.

        Args:
            builder: has the operations of the node.
            names: the name for each result, empty if it has none. Other outputs of the node's
                operations with one of these names are renamed.
            start: the index of the node's first operation.

        Returns:
            The new operand for each renamed one.
        """
        operations = builder.operations[start:]
        if all(names.get(o) == o.name for operation in operations for o in operation.outputs):
            return {}
        changed = {}
        wanted_names = set(names.values())
        for operation in operations:
            for operand in operation.outputs:
                name = names.get(operand)
                if name is None and operand.name in wanted_names:
                    name = f"{operation.name}.{operation.type.lower()}"
                if name and name != operand.name and operand not in self.settled:
                    changed[operand] = name
        renamed = builder.rename(changed, start) if changed else {}
        for old, new in renamed.items():
            if old in self.containers:
                self.containers[new] = self.containers[old]
        return renamed


def name_of(node: NodeProto) -> str:
    """Return the name of a node in its file; without one, that of its first output."""
    return text(node.name) or next(filter(None, map(text, node.output)), "")


def describe_node(number: int, node: NodeProto) -> str:
    """Return a description of a node for messages."""
    return f"node {number} ({text(node.op_type)} {name_of(node)!r})"


def full_name(node: NodeProto) -> str:
    """Return the operator's name, with its domain unless that is the standard one."""
    domain, name = domain_of(node), text(node.op_type)
    return f"{domain}.{name}" if domain else name


def origin_of(node: NodeProto) -> Origin:
    """Return a node as the origin of operations."""
    inputs, outputs = (tuple(filter(None, texts(names))) for names in (node.input, node.output))
    return Origin(full_name(node), inputs, outputs)


def opsets_of(imports: Iterable[OperatorSetIdProto]) -> dict[str, int]:
    """Return the opset version per domain; the standard domain is the empty string."""
    return {
        "" if entry.domain in STANDARD_DOMAINS else text(entry.domain): entry.version
        for entry in imports
    }
