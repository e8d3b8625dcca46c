"""Rules of ONNX's operators on sequences that its checker does not know.

A sequence holds tensors of one element type; those that are joined fit together. Engines find out
in a run that others do not, if they do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from crosschip.importers.onnx.schemas import STANDARD_DOMAINS
from crosschip.importers.onnx.tensors import text
from crosschip.ir import Builder, ModelError, Operand
from crosschip.onnx_messages import OPERAND_TYPES, NodeProto, TypeProto
from crosschip.ops.standard.joining import Concat, Stack


def check_sequences(
    nodes: Sequence[NodeProto],
    types: Mapping[str, TypeProto],
    operand_of: Callable[[str], Operand | None],
) -> None:
    """Refuse what is put into sequences, or joined, and does not go together.

    Only what shows from outside of the nodes is checked: the types of all values, and the shapes of
    what goes in as it is.

    Args:
        nodes: in an order in which they can run.
        types: those of the values that nodes read and make, as far as they are known.
        operand_of: finds what a name stands for that the nodes read from outside.

    Raises:
        ModelError: it does not; the message names the node.
    """
    held: dict[str, list[Operand]] = {}
    for node in nodes:
        if node.domain not in STANDARD_DOMAINS:
            continue
        read = [text(name) for name in node.input]
        if node.op_type == "SequenceInsert":
            _check_types(node, [types.get(name) for name in read[:2]])
        if node.op_type == "SequenceConstruct":
            _check_types(node, [types.get(name) for name in read])
            held[text(node.output[0])] = _known(read, operand_of)
        elif node.op_type == "SequenceInsert" and read[0] in held:
            held[text(node.output[0])] = [*held[read[0]], *_known(read[1:2], operand_of)]
        elif node.op_type == "SequenceEmpty":
            held[text(node.output[0])] = []
        elif node.op_type == "ConcatFromSequence":
            _check_joined(node, held.get(read[0], []))


def _known(names: Sequence[str], operand_of: Callable[[str], Operand | None]) -> list[Operand]:
    operands = map(operand_of, names)
    return [operand for operand in operands if operand is not None]


def _check_types(node: NodeProto, types: Sequence[TypeProto | None]) -> None:
    """Refuse elements of several types in one sequence."""
    codes = dict.fromkeys(
        type_.tensor_type.elem_type for type_ in map(_held, types) if type_ is not None
    )
    named = [str(OPERAND_TYPES[code]) for code in codes if code in OPERAND_TYPES]
    if len(named) > 1:
        where = f"{text(node.op_type)} {text(node.name)!r}"
        raise ModelError(f"{where}: a sequence holds one element type, not {' and '.join(named)}")


def _held(type_: TypeProto | None) -> TypeProto | None:
    """The type itself, or that of a sequence's elements, if it is a tensor's."""
    if type_ is not None and type_.HasField("sequence_type"):
        type_ = type_.sequence_type.elem_type
    return type_ if type_ is not None and type_.HasField("tensor_type") else None


def _check_joined(node: NodeProto, parts: Sequence[Operand]) -> None:
    """Refuse tensors that cannot be put together, as the operators do that put tensors together."""
    if len(parts) < 2:
        return
    numbers = {attribute.name: attribute.i for attribute in node.attribute}
    operator = Stack if numbers.get("new_axis") else Concat
    name = text(node.name) or text(node.op_type)
    Builder().add(operator, parts, numbers.get("axis", 0), name=name)
