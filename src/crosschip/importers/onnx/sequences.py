"""Checks of operators on sequences that ONNX's checker does not make.

The tensors of a sequence have one element type, and those that are joined have matching shapes.
Engines detect violations at run time, if at all.
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
    """Check the element types of sequences, and the shapes of tensors that are joined.

    Shapes are checked only for tensors that enter the subgraph from outside.

    Args:
        nodes: the nodes, in topological order.
        types: the known types by name.
        operand_of: returns the operand of a name from outside.

    Raises:
        ModelError: a check fails; the message names the node.
    """
    contents: dict[str, list[Operand]] = {}
    for node in nodes:
        if node.domain not in STANDARD_DOMAINS:
            continue
        read = [text(name) for name in node.input]
        if node.op_type == "SequenceInsert":
            _check_types(node, [types.get(name) for name in read[:2]])
        if node.op_type == "SequenceConstruct":
            _check_types(node, [types.get(name) for name in read])
            contents[text(node.output[0])] = _external_operands(read, operand_of)
        elif node.op_type == "SequenceInsert" and read[0] in contents:
            contents[text(node.output[0])] = [
                *contents[read[0]],
                *_external_operands(read[1:2], operand_of),
            ]
        elif node.op_type == "SequenceEmpty":
            contents[text(node.output[0])] = []
        elif node.op_type == "ConcatFromSequence":
            _check_joined(node, contents.get(read[0], []))


def _external_operands(
    names: Sequence[str], operand_of: Callable[[str], Operand | None]
) -> list[Operand]:
    operands = map(operand_of, names)
    return [operand for operand in operands if operand is not None]


def _check_types(node: NodeProto, types: Sequence[TypeProto | None]) -> None:
    """Check that the elements of a sequence have one type."""
    codes = dict.fromkeys(
        type_.tensor_type.elem_type for type_ in map(_tensor_type, types) if type_ is not None
    )
    type_names = [str(OPERAND_TYPES[code]) for code in codes if code in OPERAND_TYPES]
    if len(type_names) > 1:
        where = f"{text(node.op_type)} {text(node.name)!r}"
        raise ModelError(
            f"{where}: a sequence holds one element type, not {' and '.join(type_names)}"
        )


def _tensor_type(type_: TypeProto | None) -> TypeProto | None:
    """Return the tensor type, or that of a sequence's elements; `None` for other types."""
    if type_ is not None and type_.HasField("sequence_type"):
        type_ = type_.sequence_type.elem_type
    return type_ if type_ is not None and type_.HasField("tensor_type") else None


def _check_joined(node: NodeProto, parts: Sequence[Operand]) -> None:
    """Check that tensors can be concatenated or stacked."""
    if len(parts) < 2:
        return
    numbers = {attribute.name: attribute.i for attribute in node.attribute}
    operator = Stack if numbers.get("new_axis") else Concat
    name = text(node.name) or text(node.op_type)
    Builder().add(operator, parts, numbers.get("axis", 0), name=name)
