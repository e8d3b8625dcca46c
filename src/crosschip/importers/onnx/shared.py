"""State that all graphs of a model share, and the places in them that messages name."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from crosschip.importers.body import OpenAxes
from crosschip.importers.onnx.functions import key_of
from crosschip.importers.onnx.grouping import makes_no_tensor
from crosschip.importers.onnx.schemas import STANDARD_DOMAINS, domain_of
from crosschip.importers.onnx.sizes import Sizes
from crosschip.importers.onnx.tensors import TensorReader, text, texts
from crosschip.importers.onnx.unrolling import Unrolling
from crosschip.ir import Builder, ModelError, ModelFileError, Operand, Origin, UnsupportedError
from crosschip.onnx_messages import (
    FunctionProto,
    NodeProto,
    OperatorSetIdProto,
    TensorProto,
    TypeProto,
)
from crosschip.ops.definition.slots import ComputedParameter


class Shared:
    """State that all graphs of one model share.

    Attributes:
        ir_version: the version of the file format.
        reader: reads tensors of the file.
        functions: the functions that the model brings with it.
        sizes: the named sizes of the model.
        strings: the tensors of strings that operands stand for. Strings are no constants of a
            model: what reads them are extension operations, and those bring them along.
        functions_make_others: whether a node of theirs may make else than a tensor.
        containers: the types of operands that are no tensors.
        settled: operands whose names stay, whatever else they become results of.
        unrolling: keeps account of loops that are unrolled.
        open_axes: the axes of the states of loops whose sizes change from time to time.
        operation_names: the names of operations, which are different in all graphs.
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
        """The function of the model that a node calls, if it does."""
        if not self.functions:
            return None
        return self.functions.get(key_of(node))

    def names(self, stem: str, number: int) -> Iterator[str]:
        """Names for the operations of a node: the node's own for the first."""
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
        """Give the results of a node the names that the file has for them.

        Args:
            builder: has the operations that the node became.
            names: the name for each result, empty if it has none; whatever else the node's
                operations make under such a name gets another one.
            start: the index of the first operation that the node became.

        Returns:
            The operands that have taken the places of others.
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
    """The name of a node in its file: that of its first output where it has none of its own."""
    return text(node.name) or next(filter(None, map(text, node.output)), "")


def place(number: int, node: NodeProto) -> str:
    """The place of a node in a graph, as messages say it."""
    return f"node {number} ({text(node.op_type)} {name_of(node)!r})"


REFUSALS = (UnsupportedError, ComputedParameter, ModelError, ModelFileError)
"""The errors raised where something breaks a rule or cannot be expressed."""


def at(place: str, error: Exception) -> ModelFileError | UnsupportedError:
    """One of `REFUSALS`, with the place where it was met in front of its message.

    It is a `ModelFileError` where something breaks a rule, of ONNX or of a standard operator.
    """
    if isinstance(error, UnsupportedError | ComputedParameter):
        return UnsupportedError(f"{place}: {error}")
    return ModelFileError(f"{place}: {error}")


@contextmanager
def located(place: str) -> Iterator[None]:
    """Say where it is, when something is refused; see `at`."""
    try:
        yield
    except REFUSALS as error:
        raise at(place, error) from None


def full_name(node: NodeProto) -> str:
    """The operator's name, with its domain if that is not the standard one."""
    domain, name = domain_of(node), text(node.op_type)
    return f"{domain}.{name}" if domain else name


def origin_of(node: NodeProto) -> Origin:
    """A node as what is built for it remembers it."""
    inputs, outputs = (tuple(filter(None, texts(names))) for names in (node.input, node.output))
    return Origin(full_name(node), inputs, outputs)


def opsets_of(imports: Iterable[OperatorSetIdProto]) -> dict[str, int]:
    """The version of each operator set, by domain; the standard one's is the empty string."""
    return {
        "" if entry.domain in STANDARD_DOMAINS else text(entry.domain): entry.version
        for entry in imports
    }
