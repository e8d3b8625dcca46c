"""Which variables the operators of a subgraph use, and those of the subgraphs that it calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

from crosschip.flatbuffer import Table
from crosschip.flatbuffer.schemas.tflite import Operator, Tensor
from crosschip.flatbuffer.schemas.tflite.options import (
    CallOptions,
    IfOptions,
    VarHandleOptions,
    WhileOptions,
)
from crosschip.flatbuffer.schemas.tflite.stablehlo_options import (
    StablehloCaseOptions,
    StableHLOCompositeOptions,
)
from crosschip.importers.tflite.tensors import declared_type
from crosschip.ir import Array, ElementType, TensorType, UnsupportedError
from crosschip.ir.budget import spend
from crosschip.ir.dataclass import dataclass

if TYPE_CHECKING:
    from crosschip.importers.tflite.subgraph import Shared

MAX_DEPTH = 32
"""The deepest nesting of subgraphs."""

GENERATORS = {"MULTINOMIAL", "RANDOM_STANDARD_NORMAL", "RANDOM_UNIFORM"}
"""The operators that count in a variable."""

COUNTER = TensorType(ElementType.INT64, ())
"""The type of a generator's counter."""


@dataclass
class VariableUses:
    """The variables that a subgraph uses.

    Attributes:
        types: the declared types by the variables' keys.
        assigned: the keys of those that it assigns.
    """

    types: dict[str, TensorType] = field(default_factory=dict)
    assigned: set[str] = field(default_factory=set)


def key_of(options: Table | None) -> str:
    """Return what identifies the variable of VAR_HANDLE's options."""
    if not isinstance(options, VarHandleOptions):
        return "/"
    return f"{options.container or ''}/{options.shared_name or ''}"


def tensor_name(tensor: Tensor, index: int) -> str:
    """Return the name of a tensor, or one for its index."""
    return tensor.name or f"tensor_{index}"


def generator_key(subgraph: int, name: str) -> str:
    """Return what identifies the counter of the generator whose output has a name."""
    return f"{subgraph}/{name}/generator" if subgraph else f"{name}/generator"


def called_subgraphs(options: Table | None) -> Iterator[tuple[int, int]]:
    """Yield the subgraphs that an operator calls, and which of its inputs is their first."""
    match options:
        case IfOptions():
            yield options.then_subgraph_index, 1
            yield options.else_subgraph_index, 1
        case WhileOptions():
            yield options.cond_subgraph_index, 0
            yield options.body_subgraph_index, 0
        case CallOptions():
            yield options.subgraph, 0
        case StableHLOCompositeOptions():
            yield options.decomposition_subgraph_index, 0
        case StablehloCaseOptions():
            yield from ((index, 1) for index in indices(options.branch_subgraph_indices))


def indices(vector: Array | None) -> list[int]:
    """Return the elements of a list that a file may omit."""
    return [] if vector is None else vector.tolist()


def add_uses(
    uses: VariableUses, shared: Shared, index: int, handles: Mapping[int, str], depth: int = 0
) -> None:
    """Add the variables that a subgraph uses.

    Args:
        uses: to which they are added.
        shared: the state that all subgraphs share.
        index: the subgraph.
        handles: the keys of the variables whose handles are its inputs, by tensor.
        depth: the nesting depth.
    """
    if depth >= MAX_DEPTH:
        raise UnsupportedError(f"its subgraphs are nested over {MAX_DEPTH} deep")
    graph, keys = shared.subgraph(index), dict(handles)
    spend(operations=len(graph.operators))
    for number, tensor in enumerate(graph.tensors):
        if tensor.is_variable:
            name = tensor_name(tensor, number)
            uses.types.setdefault(name, declared_type(tensor))
            uses.assigned.add(name)
    for operator in graph.operators:
        inputs, outputs = indices(operator.inputs), indices(operator.outputs)
        type_, _ = shared.code(operator)
        if type_ == "VAR_HANDLE" and outputs:
            keys[outputs[0]] = key_of(operator.builtin_options)
        elif type_ == "READ_VARIABLE" and inputs and outputs:
            _add(uses, shared, index, keys.get(inputs[0]), outputs[0])
        elif type_ == "ASSIGN_VARIABLE" and len(inputs) > 1:
            _add(uses, shared, index, keys.get(inputs[0]), inputs[1])
            uses.assigned.add(keys.get(inputs[0], ""))
        elif type_ in GENERATORS and outputs:
            name = tensor_name(shared.tensor(index, outputs[0]), outputs[0])
            key = generator_key(index, name)
            uses.types[key] = COUNTER
            uses.assigned.add(key)
        for called, first in called_subgraphs(_options(operator)):
            if not 0 <= called < len(shared.model.subgraphs):
                continue  # the operator's import names it
            passed = zip(indices(shared.subgraph(called).inputs), inputs[first:], strict=False)
            inner = {inside: keys[outside] for inside, outside in passed if outside in keys}
            add_uses(uses, shared, called, inner, depth + 1)


def _add(uses: VariableUses, shared: Shared, index: int, key: str | None, tensor: int) -> None:
    """Add a variable with the type of a tensor that is read from it or assigned to it."""
    if key is not None:
        uses.types.setdefault(key, declared_type(shared.tensor(index, tensor)))


def _options(operator: Operator) -> Table | None:
    options: Table | None = operator.builtin_options or operator.builtin_options2
    return options
