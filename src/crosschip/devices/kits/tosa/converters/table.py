"""The converter table, and the helpers that several converters share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from crosschip.devices.kits.tosa.block import Value
from crosschip.devices.kits.tosa.graph import DTYPES, Graph
from crosschip.flatbuffer.schemas.tosa import Op
from crosschip.hal import CompileError, Converters, Refusal, Rule
from crosschip.hal.converters import Form
from crosschip.ir import Arithmetic, ElementType, Operand, Operation
from crosschip.ir.types import BOOLEANS, FLOATS, HALF_FLOATS
from crosschip.ops import Operator
from crosschip.ops.definition.slots import Fuse

STORED = frozenset(DTYPES) - {
    ElementType.INT2,
    ElementType.UINT2,
    ElementType.UINT4,
    ElementType.INT4,
}
"""The element types of tensors other than constants."""
REALS = FLOATS & STORED
NUMBERS = STORED - BOOLEANS
INTEGERS = NUMBERS - REALS

converters = Converters[Graph, Value](STORED, fuses=True, device="tosa")

Convert = Callable[[Graph, Any], Any]


class Widened(Graph):
    """A view of a graph in which operands have the type that arithmetic is done in."""

    def __init__(self, graph: Graph) -> None:
        vars(self).update(vars(graph))
        self._graph = graph

    def __getitem__(self, operand: Operand) -> Value:
        return self._graph.widen(self._graph[operand])


_Entry = tuple[Form, Convert, Callable[[Any], bool]]
_quantized: dict[tuple[type[Operation], Arithmetic], _Entry] = {}


def quantized(
    *operators: type[Operator],
    form: Form,
    limit: Callable[[Any], bool] = lambda _: True,
    arithmetic: Arithmetic = Arithmetic.REAL,
) -> Callable[[Convert], Convert]:
    """Decorate a function as the converter of operators on quantized tensors of a form.

    It reads operands in their own types, and returns int32, or int8, of the output's integers.

    Args:
        operators: the operators.
        form: the schemes of the tensors.
        limit: returns whether an operation of this form is converted; others compute on reals.
        arithmetic: the arithmetic of the output. Without a converter in fixed point, the one that
            rounds reals converts.
    """

    def register(function: Convert) -> Convert:
        keys = [(operator, arithmetic) for operator in operators]
        _quantized.update(dict.fromkeys(keys, (form, function, limit)))
        return function

    return register


def quantized_operators() -> frozenset[str]:
    """Return the names of operators that are converted on integers."""
    return frozenset(operator.type for operator, _ in _quantized)


def convert_quantized(g: Graph, op: Operator) -> list[Value]:
    """Convert an operation that `supports_quantized`.

    Raises:
        CompileError: the converter failed; the error names the operation.
    """
    convert = _quantized_converter(op)
    assert convert is not None, "it is supported"
    (output,) = op.outputs
    try:
        value = g.reshape(convert(g, op), shape_of(output))
    except ValueError as error:
        raise CompileError(f"{op.type} {op.name!r}: {error}", [op]) from error
    return [g.store(value, output.type.element_type)]


def supports_quantized(op: Operation) -> bool:
    """Return whether an operation on quantized tensors is converted on their integers."""
    if not isinstance(op, Operator) or len(op.outputs) != 1 or not op.quantized_inputs():
        return False
    return _quantized_converter(op) is not None


def _quantized_converter(op: Operator) -> Convert | None:
    """Return the converter of an operation on quantized tensors, the exact one first."""
    quantization = op.outputs[0].type.quantization
    exact = Arithmetic.REAL if quantization is None else quantization.arithmetic
    for arithmetic in dict.fromkeys((exact, Arithmetic.REAL)):
        entry = _quantized.get((type(op), arithmetic))
        if entry is not None and _takes(entry, op):
            return entry[1]
    return None


def _takes(entry: _Entry, op: Operator) -> bool:
    """Return whether the tensors of an operation have the form of an entry, and its limit holds."""
    if any(0 in shape_of(operand) for _, operand in op.filled()):
        return False
    form, _, limit = entry
    tensors = [(slot.name, operand) for slot, operand in op.filled() if not slot.parameter]
    constant = all(operand.is_constant for slot, operand in op.filled() if slot.parameter)
    fits = constant and all(
        name in form and form[name].takes(operand) and _has_one_zero_point(operand)
        for name, operand in [*tensors, ("output", op.outputs[0])]
    )
    return fits and limit(op)


def _has_one_zero_point(operand: Operand) -> bool:
    quantization = operand.type.quantization
    return quantization is not None and len(set(quantization.zero_point)) == 1


def converts(
    *operators: type[Operator],
    types: Collection[ElementType] = STORED,
    limit: Callable[[Any], Refusal | None] | None = None,
    computed: Collection[str] = (),
    narrow: bool = False,
) -> Callable[[Convert], Convert]:
    """Decorate a function as the converter of operators.

    The converter reads widened operands, in which operators compute, and its results are reduced to
    the outputs' types; fused activations are applied to its first result.

    Args:
        operators: the operators.
        types: the element types of their tensors.
        limit: returns a refusal for unsupported operations.
        computed: the parameters that need not be constant.
        narrow: whether the converter reads operands in their own types.
    """

    def register(function: Convert) -> Convert:
        for operator in operators:
            decorate = converters.converts(
                operator,
                types=types,
                output_types=STORED,
                limit=_limit(limit),
                computed=computed,
                nonempty=True,
            )
            decorate(_complete(function, narrow or operator.moves))
        return function

    return register


def _limit(limit: Callable[[Any], Refusal | None] | None) -> Callable[[Any], Refusal | None]:
    """Return a check that outputs are not empty, in addition to another one."""

    def check(op: Operator) -> Refusal | None:
        if any(0 in (output.type.shape or ()) for output in op.outputs):
            return Refusal("output", "has no elements", Rule.SHAPE)
        return limit(op) if limit else None

    return check


def _complete(function: Convert, narrow: bool) -> Convert:
    def convert(g: Graph, op: Operator) -> Sequence[Value]:
        result = function(g if narrow else Widened(g), op)
        values = list(result) if isinstance(result, list | tuple) else [result]
        if op.fused is not Fuse.NONE:
            wrapped = g.store(values[0], op.outputs[0].type.element_type)
            values[0] = g.clamp(g.widen(wrapped), *op.fused.bounds)
        return [
            g.store(g.reshape(value, shape_of(output)), output.type.element_type)
            for value, output in zip(values, op.outputs, strict=True)
        ]

    return convert


def unary(op: Op) -> Convert:
    """Return a converter to an elementwise operator of one tensor."""
    return lambda g, operation: g.unary(op, g[operation.inputs[0]])


def binary(op: Op) -> Convert:
    """Return a converter to an elementwise operator of two tensors."""
    return lambda g, operation: g.binary(op, g[operation.inputs[0]], g[operation.inputs[1]])


def shape_of(operand: Operand | Operation) -> tuple[int, ...]:
    """Return the static shape of an operand, or of an operation's first output."""
    if isinstance(operand, Operation):
        operand = operand.outputs[0]
    shape = operand.type.static_shape
    assert shape is not None, "all sizes are known"
    return shape


def is_real(operand: Operand) -> bool:
    """Return whether an operand holds reals."""
    return operand.type.element_type in REALS


def is_half(operand: Operand) -> bool:
    """Return whether an operand holds reals of 16 bits."""
    return operand.type.element_type in HALF_FLOATS
