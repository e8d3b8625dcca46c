"""Type inference for the outputs of opaque subgraphs, without shapes.

ONNX's own inference is not used since it is not robust against invalid nodes.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from crosschip.importers.onnx.contributed import guessed_types, known_types
from crosschip.importers.onnx.schemas import STANDARD_DOMAINS, schema_of
from crosschip.importers.onnx.tensors import text
from crosschip.ir import UnsupportedError
from crosschip.onnx_messages import (
    OPERAND_TYPES,
    AttributeProto,
    FunctionProto,
    GraphProto,
    NodeProto,
    TensorProto,
    TypeProto,
    tensor_type,
)

if TYPE_CHECKING:
    from onnx import defs

Types = dict[str, TypeProto]
"""The known types of values, by name."""

MAX_DEPTH = 32
MAX_NODES = 100_000
"""Limits on the nesting of functions and on the nodes that they expand to."""

_DTYPE_ATTRIBUTES = ("dtype", "to", "output_dtype", "output_datatype")
_LEARNING = "ai.onnx.ml"
_PAIRS = ("cats_strings", "classes_strings")
_LABELS = {
    "classlabels_int64s": TensorProto.INT64,
    "classlabels_ints": TensorProto.INT64,
    "classlabels_strings": TensorProto.STRING,
    "values_floats": TensorProto.FLOAT,
    "values_int64s": TensorProto.INT64,
    "values_strings": TensorProto.STRING,
}
_CONSTANTS = ("Constant", "ConstantOfShape")
_VALUES = {
    "value_float": TensorProto.FLOAT,
    "value_floats": TensorProto.FLOAT,
    "value_int": TensorProto.INT64,
    "value_ints": TensorProto.INT64,
    "value_string": TensorProto.STRING,
    "value_strings": TensorProto.STRING,
}
_TENSOR = re.compile(r"tensor\((\w+)\)")
_ONNX_NAMES = {
    "float": "float32",
    "double": "float64",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float8e8m0": "float8_e8m0fnu",
    "float4e2m1": "float4_e2m1fn",
}


class TypeInference:
    """Inference of output types from input types.

    Args:
        opsets: the opset version per domain.
        functions: the functions of the model.
    """

    def __init__(self, opsets: Mapping[str, int], functions: Iterable[FunctionProto]) -> None:
        self._opsets = opsets
        self._functions = {(text(f.domain), text(f.name)): f for f in functions}
        self._depth = 0
        self._count = 0

    def extend(
        self, types: Types, nodes: Iterable[NodeProto], declared: Mapping[str, TypeProto]
    ) -> None:
        """Add the types of the nodes' outputs, with the shapes that the file declares.

        Raises:
            UnsupportedError: functions are nested too deep or expand to too many nodes.
        """
        for node in nodes:
            self._count += 1
            if self._depth > MAX_DEPTH or self._count > MAX_NODES:
                raise UnsupportedError("its functions are nested too deep, or make too many nodes")
            inferred = self._output_types(node, types)
            guessed: list[TypeProto | None] = []
            if not any(inferred) and self._is_unknown(node):
                guessed = guessed_types(node, [types.get(text(name)) for name in node.input])
            names = map(text, node.output)
            for name, type_, guess in itertools.zip_longest(names, inferred, guessed):
                declared_type = declared.get(name or "")
                if not name:
                    continue
                if (
                    declared_type is not None
                    and declared_type.WhichOneof("value")
                    and _agree(declared_type, type_)
                ):
                    types[name] = declared_type
                elif result_type := type_ or guess:
                    types[name] = _without_shape(result_type)

    def _output_types(self, node: NodeProto, types: Types) -> list[TypeProto | None]:
        inputs = [types.get(text(name)) for name in node.input]
        graphs = [a.g for a in node.attribute if a.HasField("g")]
        function = self._functions.get((text(node.domain), text(node.op_type)))
        if function is not None:
            inner = {n: t for n, t in zip(function.input, inputs, strict=False) if t is not None}
            self._depth += 1
            self.extend(inner, function.node, {})
            self._depth -= 1
            return [inner.get(text(name)) for name in function.output]
        if node.op_type in _CONTROL and graphs and node.domain in STANDARD_DOMAINS:
            return self._by_graph(node, graphs[0], inputs, types)
        if node.op_type in _CONTAINERS and node.domain in (*STANDARD_DOMAINS, _LEARNING):
            return [_CONTAINERS[node.op_type](inputs, node)]
        schema = self._schema(node)
        return known_types(node, inputs) if schema is None else _by_schema(schema, node, inputs)

    def _schema(self, node: NodeProto) -> defs.OpSchema | None:
        return schema_of(node, self._opsets.get(text(node.domain), 1))

    def _is_unknown(self, node: NodeProto) -> bool:
        """Return whether an operator has neither an ONNX schema nor a function in the model."""
        key = text(node.domain), text(node.op_type)
        return key not in self._functions and self._schema(node) is None

    def unknown(self, nodes: Iterable[NodeProto], types: Types) -> set[str]:
        """Return the names of values of unknown types that derive from operators unknown to ONNX.

        Such a value may be no tensor, so that it cannot pass between operations.
        """
        names: set[str] = set()
        for node in nodes:
            if self._is_unknown(node) or not names.isdisjoint(map(text, node.input)):
                names.update(text(name) for name in node.output if name and name not in types)
        return names

    def _by_graph(
        self, node: NodeProto, graph: GraphProto, inputs: list[TypeProto | None], types: Types
    ) -> list[TypeProto | None]:
        """Infer output types of control flow: initial types for states, else the body's types.

        A state that is optional initially has the body's type.
        """
        skipped, states = _CONTROL[node.op_type](node, graph)
        inner = dict(types)
        is_scan = node.op_type == "Scan"
        arguments = inputs[len(inputs) - len(graph.input) :] if is_scan else inputs
        for value, type_ in zip(graph.input, arguments, strict=False):
            input_type = value.type if value.type.WhichOneof("value") else type_
            if input_type is not None:
                inner[text(value.name)] = _without_shape(input_type)
        declared = {text(v.name): v.type for v in [*graph.value_info, *graph.output]}
        self.extend(inner, graph.node, declared)
        body_types = [inner.get(text(value.name)) for value in graph.output][skipped:]
        first = inputs[len(inputs) - states :] if node.op_type == "Loop" else inputs
        pairs = zip(first[:states], body_types, strict=False)
        state_types = [
            body if initial is not None and initial.HasField("optional_type") else initial
            for initial, body in pairs
        ]
        return [*state_types, *body_types[states:]]


_CONTROL: dict[str, Callable[[NodeProto, GraphProto], tuple[int, int]]] = {
    "If": lambda node, graph: (0, 0),
    "Loop": lambda node, graph: (1, max(0, len(node.input) - 2)),
    "Scan": lambda node, graph: (0, _scan_states(node)),
}
"""The number of graph outputs that are not node outputs, and the number of states."""


def _scan_states(node: NodeProto) -> int:
    scanned = next((a.i for a in node.attribute if a.name == "num_scan_inputs"), 0)
    return max(0, len(node.input) - scanned)


def _sequence_of(inputs: list[TypeProto | None], node: NodeProto) -> TypeProto | None:
    first = inputs[0] if inputs else None
    return None if first is None else _sequence(first)


def _element(inputs: list[TypeProto | None], node: NodeProto) -> TypeProto | None:
    first = inputs[0] if inputs else None
    return first.sequence_type.elem_type if first and first.HasField("sequence_type") else None


def _content_type(inputs: list[TypeProto | None], node: NodeProto) -> TypeProto | None:
    """Return the content type of an optional value; other types stay the same."""
    first = inputs[0] if inputs else None
    return first.optional_type.elem_type if first and first.HasField("optional_type") else first


def _same(inputs: list[TypeProto | None], node: NodeProto) -> TypeProto | None:
    return inputs[0] if inputs else None


def _empty(inputs: list[TypeProto | None], node: NodeProto) -> TypeProto:
    code = next((a.i for a in node.attribute if a.name == "dtype"), 1)
    return _sequence(tensor_type(code, None))


def _optional(inputs: list[TypeProto | None], node: NodeProto) -> TypeProto | None:
    declared = next((a.tp for a in node.attribute if a.name == "type"), None)
    content = declared or (inputs[0] if inputs else None)
    return (
        None if content is None else TypeProto(optional_type=TypeProto.Optional(elem_type=content))
    )


def _zip_map(inputs: list[TypeProto | None], node: NodeProto) -> TypeProto:
    has_texts = any(a.name == "classlabels_strings" and a.strings for a in node.attribute)
    key = TensorProto.STRING if has_texts else TensorProto.INT64
    value = tensor_type(TensorProto.FLOAT, [])
    return _sequence(TypeProto(map_type=TypeProto.Map(key_type=key, value_type=value)))


def _sequence(element: TypeProto) -> TypeProto:
    return TypeProto(sequence_type=TypeProto.Sequence(elem_type=element))


_CONTAINERS: dict[str, Callable[[list[TypeProto | None], NodeProto], TypeProto | None]] = {
    "ConcatFromSequence": _element,
    "Optional": _optional,
    "OptionalGetElement": _content_type,
    "SequenceAt": _element,
    "SequenceConstruct": _sequence_of,
    "SequenceEmpty": _empty,
    "SequenceErase": _same,
    "SequenceInsert": _same,
    "SplitToSequence": _sequence_of,
    "ZipMap": _zip_map,
}
"""Output types of the operators on sequences, optional values and maps."""


def _by_schema(
    schema: defs.OpSchema, node: NodeProto, inputs: list[TypeProto | None]
) -> list[TypeProto | None]:
    """Infer output types by the schema: a fixed type, that of an input, or that of an attribute."""
    bound: dict[str, TypeProto] = {}
    for index, type_ in enumerate(inputs):
        if type_ is not None and schema.inputs:
            formal = schema.inputs[min(index, len(schema.inputs) - 1)]
            bound.setdefault(formal.type_str, type_)
    constraints = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    output_types: list[TypeProto | None] = []
    for index in range(len(node.output)):
        formal = schema.outputs[min(index, len(schema.outputs) - 1)]
        allowed = constraints.get(formal.type_str, [formal.type_str])
        if formal.type_str in bound:
            output_types.append(bound[formal.type_str])
        elif len(allowed) == 1:
            output_types.append(_from_text(allowed[0]))
        elif all(map(_TENSOR.fullmatch, allowed)):
            output_types.append(_attribute_type(schema, node, inputs))
        else:
            output_types.append(None)
    return output_types


def _attribute_type(
    schema: defs.OpSchema, node: NodeProto, inputs: list[TypeProto | None]
) -> TypeProto | None:
    """Return the type that an attribute or its default selects, else that of the first input."""
    if schema.domain == _LEARNING:
        return tensor_type(_label_type(node, inputs), None)
    if schema.name in _CONSTANTS:
        code = _constant_type(node)
        return tensor_type(code, None) if code in OPERAND_TYPES else None
    name = next((name for name in _DTYPE_ATTRIBUTES if name in schema.attributes), None)
    if name is None:
        return None
    attribute = next((a for a in node.attribute if a.name == name), None)
    chosen = schema.attributes[name].default_value if attribute is None else attribute
    if chosen.type != AttributeProto.INT:
        return inputs[0] if inputs else None
    return tensor_type(chosen.i, None) if chosen.i in OPERAND_TYPES else None


def _constant_type(node: NodeProto) -> int:
    """Return the data type of a constant or fill value; float32 by default."""
    for attribute in node.attribute:
        if attribute.name == "value":
            return attribute.t.data_type
        if attribute.name == "sparse_value":
            return attribute.sparse_tensor.values.data_type
        if attribute.name in _VALUES:
            return _VALUES[attribute.name]
    return TensorProto.FLOAT


def _label_type(node: NodeProto, inputs: list[TypeProto | None]) -> int:
    """Return the data type of the labels that an operator of ONNX-ML returns.

    It is that of the attribute that lists the labels. Attributes that list pairs of a string and an
    integer map either one to the other.
    """
    for attribute in node.attribute:
        if attribute.name == "values_tensor":
            return attribute.t.data_type
        if attribute.name in _LABELS:
            return _LABELS[attribute.name]
        if attribute.name in _PAIRS and inputs and inputs[0] is not None:
            is_text = inputs[0].tensor_type.elem_type == TensorProto.STRING
            return TensorProto.INT64 if is_text else TensorProto.STRING
    return TensorProto.INT64


def _from_text(type_text: str) -> TypeProto | None:
    """Parse a tensor type as schemas write it."""
    match = _TENSOR.fullmatch(type_text)
    if match is None:
        return None
    name = _ONNX_NAMES.get(match[1], match[1])
    code = next((c for c, dtype in OPERAND_TYPES.items() if dtype.value == name), None)
    return None if code is None else tensor_type(code, None)


def _agree(declared: TypeProto, inferred: TypeProto | None) -> bool:
    """Return whether a declared type is compatible with the inferred one."""
    if inferred is None or not inferred.HasField("tensor_type"):
        return inferred is None or declared.WhichOneof("value") == inferred.WhichOneof("value")
    return declared.tensor_type.elem_type == inferred.tensor_type.elem_type


def _without_shape(type_: TypeProto) -> TypeProto:
    if not type_.HasField("tensor_type"):
        return type_
    return tensor_type(type_.tensor_type.elem_type, None)
