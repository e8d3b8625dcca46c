"""Summaries of models: inputs, outputs, open sizes, operators, parameters, arithmetic, memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

from crosschip.drawing.tables import Table, to_html, to_text
from crosschip.ir import Dim, Model, Operand, Operation, TensorType
from crosschip.ir.bodies import walk_operations
from crosschip.ir.dimension import is_unknown, name_of, product
from crosschip.ir.shape_binding import open_names, shapes_and_sizes, unnamed_sizes
from crosschip.ir.state_names import conventional_pairs
from crosschip.ir.text import legible
from crosschip.ir.types import PYTHONS_TYPES, ElementType
from crosschip.ops.definition.operator import Operator, UnknownRank
from crosschip.ops.definition.slots import Parameter
from crosschip.passes.specialize import Specialize

_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_LONGEST_FORMULA = 120
"""The maximum number of characters of a formula in a table."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A number that may depend on open sizes.

    Attributes:
        known: a number or a formula of open sizes.
        unknown: the number of operations whose part is not in `known`, since their sizes depend on
            the data, or on open sizes in a way that formulas do not express.
    """

    known: Dim = 0
    unknown: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.known + other.known, self.unknown + other.unknown)

    def in_words(self, unit: str = "") -> str:
        """Return a short text: a number with a prefix, or the beginning of a formula."""
        if isinstance(self.known, int):
            text = _prefixed(self.known, unit) if self.known or not self.unknown else ""
        else:
            grouped = _NUMBER.sub(lambda number: f"{int(number[0]):,}", str(self.known))
            text = shorten(grouped, _LONGEST_FORMULA, placeholder=" …")
            text = f"{text} {unit}" if unit else text
        if not self.unknown:
            return text
        return f"{text}, " * bool(text) + f"unknown for {self.unknown} operations"

    def to_json(self) -> int | str | None:
        """Return a number, or a formula as text; `None` if a part is unknown."""
        if self.unknown:
            return None
        return self.known if isinstance(self.known, int) else str(self.known)


@dataclass(frozen=True, slots=True)
class OperatorSummary:
    """The uses of an operator in a model, also in bodies of control flow.

    Attributes:
        type: the name of the operator.
        operations: the number of uses.
        parameters: the number of elements of constant tensors; each constant counts once.
        multiply_adds: the products that are added up, as in matrix products and convolutions.
    """

    type: str
    operations: int
    parameters: int
    multiply_adds: Amount


@dataclass(frozen=True, slots=True)
class OpenSize:
    """A size of the inputs that is open.

    Attributes:
        name: its name.
        inputs: the axes of inputs that have it, as in `image axis 2`.
        outputs: the axes of outputs that depend on it, as in `boxes axis 1 = H // 4`.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Summary:
    """A summary of a model. It prints as tables, and notebooks show it.

    Attributes:
        name: the name of the model.
        inputs: the types of the inputs, by name.
        outputs: the types of the outputs, by name.
        sizes: the open sizes.
        state: the input that an output becomes in the next run of a session, by the names that
            exporters use.
        operators: the operators, the most frequent first.
        weights: the number of elements and bytes of the constant tensors, by element type.
        values: the number of values that operations compute, by element type.
        activations: the bytes of all values that operations compute.
        most_at_once: the maximum number of bytes of inputs and computed values that are needed at
            once, in the order of the operations; `None` if it depends on open sizes.
    """

    name: str
    inputs: Mapping[str, TensorType]
    outputs: Mapping[str, TensorType]
    sizes: tuple[OpenSize, ...]
    state: Mapping[str, str]
    operators: tuple[OperatorSummary, ...]
    weights: Mapping[str, tuple[int, int]]
    values: Mapping[str, int]
    activations: Amount
    most_at_once: Amount | None

    @property
    def operations(self) -> int:
        """The number of operations, with those of bodies of control flow."""
        return sum(operator.operations for operator in self.operators)

    @property
    def parameters(self) -> int:
        """The number of elements of constant tensors."""
        return sum(elements for elements, _ in self.weights.values())

    @property
    def weight_bytes(self) -> int:
        """The bytes of constant tensors."""
        return sum(nbytes for _, nbytes in self.weights.values())

    @property
    def multiply_adds(self) -> Amount:
        """The multiply-adds of a run; bodies of control flow count once."""
        return sum((operator.multiply_adds for operator in self.operators), Amount())

    def tables(self) -> Iterator[Table]:
        """Yield the tables of the summary."""
        for title, types in (("Inputs", self.inputs), ("Outputs", self.outputs)):
            rows = [(legible(name), *_in_columns(type_)) for name, type_ in types.items()]
            yield Table(title, ("name", "type", "shape"), rows)
        if self.sizes:
            sizes = [
                (legible(size.name), "\n".join(size.inputs), "\n".join(size.outputs))
                for size in self.sizes
            ]
            yield Table("Open sizes", ("size", "inputs", "outputs that depend on it"), sizes)
        if self.state:
            state = [(legible(output), legible(input)) for output, input in self.state.items()]
            yield Table("State of a session", ("output", "input of the next run"), state)
        yield Table("Totals", ("quantity", "amount"), self._totals())
        operators = [
            (
                each.type,
                each.operations,
                f"{each.parameters:,}" if each.parameters else "",
                "" if each.multiply_adds == Amount() else each.multiply_adds.in_words(),
            )
            for each in self.operators
        ]
        columns = ("operator", "operations", "parameters", "multiply-adds")
        yield Table("Operators", columns, operators, columns[1:])

    def _totals(self) -> list[tuple[str, str]]:
        weights = [f"{count:,} {element_type}" for element_type, (count, _) in self.weights.items()]
        values = [f"{count:,} {element_type}" for element_type, count in self.values.items()]
        return [
            ("operations", f"{self.operations:,} of {len(self.operators)} operators"),
            ("parameters", ", ".join(weights) or "none"),
            ("bytes of weights", _prefixed(self.weight_bytes, "B")),
            ("multiply-adds", self.multiply_adds.in_words()),
            ("computed values", ", ".join(values) or "none"),
            ("bytes of them", self.activations.in_words("B")),
            (
                "most at once",
                "depends on open sizes"
                if self.most_at_once is None
                else self.most_at_once.in_words("B"),
            ),
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the summary as plain JSON values; formulas are texts."""
        return {
            "name": self.name,
            "inputs": [_describe(name, type_) for name, type_ in self.inputs.items()],
            "outputs": [_describe(name, type_) for name, type_ in self.outputs.items()],
            "open_sizes": [
                {"name": size.name, "inputs": list(size.inputs), "outputs": list(size.outputs)}
                for size in self.sizes
            ],
            "state": dict(self.state),
            "operations": self.operations,
            "operators": [
                {
                    "type": operator.type,
                    "operations": operator.operations,
                    "parameters": operator.parameters,
                    "multiply_adds": operator.multiply_adds.to_json(),
                }
                for operator in self.operators
            ],
            "parameters": self.parameters,
            "weight_bytes": self.weight_bytes,
            "weights": {
                name: {"elements": elements, "bytes": nbytes}
                for name, (elements, nbytes) in self.weights.items()
            },
            "values": dict(self.values),
            "multiply_adds": self.multiply_adds.to_json(),
            "activation_bytes": self.activations.to_json(),
            "most_bytes_at_once": self.most_at_once and self.most_at_once.to_json(),
        }

    def __str__(self) -> str:
        return to_text(f"Model {legible(self.name)}", self.tables())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return to_html(f"Model {self.name}", self.tables())


def summarize(
    model: Model, shapes: Mapping[str, Sequence[int | None] | int] | None = None
) -> Summary:
    """Summarize a model.

    Args:
        model: the model.
        shapes: shapes of inputs or open sizes, as for `crosschip.compile`; numbers then replace
            formulas.

    Raises:
        InputError: the shapes do not fit the model.
    """
    model = _specialize(model, shapes or {})
    operations = list(walk_operations(model))
    weights = _weights(operations)
    computed = [output for operation in operations for output in operation.outputs]
    inputs = {name: operand.type for name, operand in model.inputs.items()}
    outputs = {name: operand.type for name, operand in model.outputs.items()}
    return Summary(
        model.name,
        inputs,
        outputs,
        tuple(_open_sizes(inputs, outputs)),
        dict(conventional_pairs(model.outputs, model.inputs)),
        tuple(_operators(operations, weights)),
        _weights_by_type(weights),
        _values_by_type(computed),
        _total(_nbytes(operand) for operand in computed),
        _most_at_once(model),
    )


def _specialize(model: Model, shapes: Mapping[str, Sequence[int | None] | int]) -> Model:
    """Return the model with given shapes, and with names for sizes that have none."""
    types = {name: operand.type for name, operand in model.inputs.items()}
    if shapes:
        model = Specialize(*shapes_and_sizes(types, shapes))(model)
        types = {name: operand.type for name, operand in model.inputs.items()}
    unnamed = unnamed_sizes(types)
    return Specialize({}, unnamed)(model) if unnamed else model


def _weights(operations: Iterable[Operation]) -> dict[Operand, Operation]:
    """Return the constant tensors, each with the first operation that reads it.

    The parameters of operators, such as strides, are no tensors.
    """
    weights: dict[Operand, Operation] = {}
    for operation in operations:
        operands = (
            [o for slot, o in operation.filled() if not isinstance(slot, Parameter)]
            if isinstance(operation, Operator)
            else operation.inputs
        )
        for operand in operands:
            if operand is not None and operand.is_constant:
                weights.setdefault(operand, operation)
    return weights


def _operators(
    operations: Sequence[Operation], weights: Mapping[Operand, Operation]
) -> Iterator[OperatorSummary]:
    parameters: Counter[str] = Counter()
    for operand, operation in weights.items():
        parameters[operation.type] += _elements(operand)
    work: dict[str, Amount] = {}
    for operation in operations:
        if not operation.bodies:  # the operations of bodies are among the others
            work[operation.type] = work.get(operation.type, Amount()) + _multiply_adds(operation)
    for type_, count in Counter(operation.type for operation in operations).most_common():
        yield OperatorSummary(type_, count, parameters[type_], work.get(type_, Amount()))


def _multiply_adds(operation: Operation) -> Amount:
    try:
        return _amount(operation.multiply_adds())
    except UnknownRank:
        return Amount(0, 1)


def _amount(number: Dim) -> Amount:
    return Amount(0, 1) if is_unknown(number) else Amount(number)


def _total(amounts: Iterable[Amount]) -> Amount:
    return sum(amounts, Amount())


def _nbytes(operand: Operand) -> Amount:
    type_ = operand.type
    if type_.shape is None or type_.element_type in PYTHONS_TYPES:
        return Amount(0, 1)
    bits = _bits(type_.element_type)
    return _amount((product(type_.shape) * bits + 7) // 8)


def _bits(element_type: ElementType) -> int:
    """Return the bits of an element; those of few bits are packed in files and on devices."""
    name = element_type.value
    few = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2, "float4_e2m1fn": 4}
    return few.get(name) or 8 * element_type.dtype.itemsize


def _elements(operand: Operand) -> int:
    count = product(operand.type.shape or ())
    assert isinstance(count, int), "constants have static shapes"
    return count


def _weights_by_type(weights: Iterable[Operand]) -> dict[str, tuple[int, int]]:
    totals: dict[str, tuple[int, int]] = {}
    for operand in weights:
        elements, nbytes = totals.get(operand.type.element_type.value, (0, 0))
        size = _nbytes(operand).known
        assert isinstance(size, int), "constants have static shapes"
        totals[operand.type.element_type.value] = (elements + _elements(operand), nbytes + size)
    return totals


def _values_by_type(operands: Iterable[Operand]) -> dict[str, int]:
    return dict(Counter(operand.type.element_type.value for operand in operands).most_common())


def _most_at_once(model: Model) -> Amount | None:
    """Return the maximum number of bytes of inputs and values needed at the same time."""
    last_use: dict[Operand, int] = {}
    for index, operation in enumerate(model.operations):
        for operand in (*operation.inputs, *operation.outputs):
            if operand is not None and not operand.is_constant:
                last_use[operand] = index
    results = set(model.outputs.values())
    live = _total(_nbytes(operand) for operand in model.inputs.values())
    most = live.known
    unknown = live.unknown
    ends: dict[int, list[Operand]] = {}
    for operand, index in last_use.items():
        ends.setdefault(index, []).append(operand)
    now = live.known
    for index, operation in enumerate(model.operations):
        outputs = _total(_nbytes(output) for output in operation.outputs)
        now, unknown = now + outputs.known, unknown + outputs.unknown
        if not isinstance(now, int) or not isinstance(most, int):
            return None
        most = max(most, now)
        for operand in ends.get(index, ()):
            if operand not in results:
                now = now - _nbytes(operand).known
    return Amount(most, unknown)


def _open_sizes(
    inputs: Mapping[str, TensorType], outputs: Mapping[str, TensorType]
) -> Iterator[OpenSize]:
    for name in sorted(open_names(inputs.values())):
        yield OpenSize(name, tuple(_axes(name, inputs)), tuple(_axes(name, outputs)))


def _axes(size: str, types: Mapping[str, TensorType]) -> Iterator[str]:
    """Yield the axes whose size is an open size or depends on it."""
    for name, type_ in types.items():
        for axis, dimension in enumerate(type_.shape or ()):
            if isinstance(dimension, int) or size not in dimension.names:
                continue
            formula = "" if name_of(dimension) == size else f" = {dimension}"
            yield f"{legible(name)} axis {axis}{formula}"


def _in_columns(type_: TensorType) -> tuple[str, str]:
    if type_.shape is None:
        return str(type_), ""
    return str(type_.element_type), f"[{', '.join(map(str, type_.shape))}]"


def _describe(name: str, type_: TensorType) -> dict[str, Any]:
    shape = type_.shape
    return {
        "name": name,
        "element_type": str(type_.element_type),
        "shape": None
        if shape is None
        else [size if isinstance(size, int) else str(size) for size in shape],
        "type": str(type_),
    }


def _prefixed(number: int, unit: str) -> str:
    """Return a number with three digits and a prefix, as in `3.87 G`."""
    if number < 10_000:
        return f"{number:,} {unit}".strip()
    value, prefixes = float(number), iter("kMGTPE")
    prefix = ""
    while value >= 1000 and (longer := next(prefixes, "")):
        value, prefix = value / 1000, longer
    return f"{value:.3g} {prefix}{unit}"
