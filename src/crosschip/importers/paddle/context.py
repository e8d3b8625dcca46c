"""An operator as the function that imports it sees it, with checked access."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, TypeVar

from crosschip.importers.paddle import tensor_types
from crosschip.importers.paddle.lod import Lod
from crosschip.importers.paddle.program import Block, Operator, Scalar
from crosschip.importers.paddle.values import MAX_ELEMENTS, Values, elements
from crosschip.importers.table import ImportTable
from crosschip.ir import (
    Array,
    Builder,
    ElementType,
    Model,
    ModelError,
    Operand,
    Origin,
    Scan,
    TensorType,
    UnsupportedError,
    constant,
)
from crosschip.ops import Operator as StandardOperator
from crosschip.ops.definition.custom import PackagedOperator
from crosschip.ops.definition.slots import Fuse
from crosschip.ops.standard.conversion import Cast
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.joining import Concat
from crosschip.ops.standard.layout import Reshape

_FUSED = {"": Fuse.NONE, "relu": Fuse.RELU, "relu1": Fuse.RELU1, "relu6": Fuse.RELU6}
"""The activations that a standard operator can apply to its result.

Fusing passes of Paddle (paddle/fluid/framework/ir) and Paddle Lite (lite/core/optimizer/mir/fusion)
name more.
"""

_KINDS = {bool: "true or false", int: "an integer", float: "a number", str: "a text"}

T = TypeVar("T", bool, int, float, str)
Option = TypeVar("Option")


ScanStep = Callable[[Builder, Operand, Sequence[Operand]], Sequence[Operand]]
"""Computes the next state and the scan outputs from the state and the slices of one iteration.

It may capture constants only.
"""


class Context:
    """One operator of a program: what it reads, its parameters, and what is built for it.

    A parameter is an attribute, or a tensor in its place: one in an input of the same name (most
    parameters in Paddle 3), or in a slot that `instead` lists. Where a method returns plain values,
    the tensor must be constant.

    Every method raises `ModelError` if what it looks for is missing or of another type, and
    `UnsupportedError` if it cannot be expressed; the message names the slot or attribute.
    """

    __slots__ = ("_operator", "_values")

    def __init__(self, operator: Operator, values: Values) -> None:
        self._operator = operator
        self._values = values

    @property
    def blocks(self) -> Sequence[Block]:
        """The blocks that the operator runs, if it is control flow."""
        return self._operator.blocks

    @property
    def values(self) -> Values:
        """The values that variables have where the operator is."""
        return self._values

    @property
    def name(self) -> str:
        """The name that the operation is to have."""
        return self._operator.name

    @property
    def kind(self) -> str:
        """What Paddle 2 calls the operator."""
        return self._operator.type

    @property
    def origin(self) -> Origin:
        """The operator as what is built for it remembers it."""
        return self._operator.origin

    def variables(self, slot: str) -> Sequence[str]:
        """The names of the variables in an input slot."""
        return self._operator.inputs.get(slot, ())

    def results(self, slot: str = "Out") -> Sequence[str]:
        """The names of the variables in an output slot."""
        return self._operator.outputs.get(slot, ())

    def inputs(self, slot: str) -> tuple[Operand, ...]:
        """The operands in a slot, in order; none if the slot is empty."""
        return tuple([self._values[name] for name in self._operator.inputs.get(slot, ())])

    def optional_input(self, slot: str) -> Operand | None:
        """The only operand in a slot; `None` if the slot is empty."""
        operands = self.inputs(slot)
        if len(operands) > 1:
            raise ModelError(f"{slot}: takes one tensor, not {len(operands)}")
        return operands[0] if operands else None

    def input(self, slot: str = "X") -> Operand:
        """The only operand in a slot."""
        operand = self.optional_input(slot)
        if operand is None:
            raise ModelError(f"{slot}: is required")
        return operand

    def flag(self, name: str, default: bool | None = None) -> bool:
        """A parameter that is true or false."""
        return self._one(name, bool, default)

    def integer(self, name: str, default: int | None = None, *instead: str) -> int:
        """A parameter that is an integer."""
        return self._one(name, int, default, *instead)

    def integers(
        self, name: str, default: tuple[int, ...] | None = None, *instead: str
    ) -> tuple[int, ...]:
        """A parameter that is a list of integers."""
        return self._all(name, int, default, *instead)

    def real(self, name: str, default: float | None = None, *instead: str) -> float:
        """A parameter that is a number."""
        return self._one(name, float, default, *instead)

    def reals(
        self, name: str, default: tuple[float, ...] | None = None, *instead: str
    ) -> tuple[float, ...]:
        """A parameter that is a list of numbers."""
        return self._all(name, float, default, *instead)

    def numbers(self, name: str) -> Sequence[bool | int | float]:
        """A parameter that is a list of numbers of any type; empty if it is left out."""
        values = self._parameter(name) or ()
        numbers = [value for value in values if isinstance(value, bool | int | float)]
        if len(numbers) != len(values):
            raise ModelError(f"{name}: has elements that are no numbers")
        return numbers

    def text(self, name: str, default: str | None = None) -> str:
        """A parameter that is a text."""
        return self._one(name, str, default)

    def one_of(self, name: str, options: Mapping[str, Option], default: str) -> Option:
        """The choice that the text of a parameter stands for."""
        written = self.text(name, default)
        if written not in options:
            raise ModelError(f"{name}: {written!r} is not one of {', '.join(options)}")
        return options[written]

    def fuse_code(self, attribute: str = "act_type") -> Fuse:
        """Return the fused activation that an attribute names; NONE if it is missing."""
        name = self.text(attribute, "")
        if name not in _FUSED:
            known = ", ".join(filter(None, _FUSED))
            raise UnsupportedError(
                f"{attribute} {name!r} cannot be expressed, only {known}; export without fusing"
            )
        return _FUSED[name]

    def element_type(self, name: str) -> ElementType | None:
        """A parameter that is an element type; `None` if it is left open."""
        values = self._parameter(name)
        if values and isinstance(values[0], ElementType):
            return values[0]
        code = self.integer(name, -1)
        return None if code < 0 else tensor_types.from_code(code)

    def constants_among(self, name: str, *instead: str) -> Sequence[int | None] | None:
        """A list of integers, `None` for each that is computed; `None` if it is as a whole."""
        operands: Sequence[Operand] = self._in_place(name, *instead)
        if not operands:
            return self.integers(name)
        if len(operands) == 1 and not operands[0].is_constant:
            operands = self._values.stacked.get(operands[0], ())
            if not operands:
                return None
        return [entry for operand in operands for entry in _integers(operand)]

    def real_or_tensor(
        self, name: str, default: float | None = None, *instead: str
    ) -> float | Operand:
        """A number; an operand if it is computed."""
        operands = self._in_place(name, *instead)
        if len(operands) == 1 and not operands[0].is_constant:
            return self.as_type(operands[0], ElementType.FLOAT32)
        return self.real(name, default, *instead)

    def integer_or_tensor(self, name: str, default: int, *instead: str) -> int | Operand:
        """An integer; an operand if it is computed."""
        operands = self._in_place(name, *instead)
        if len(operands) == 1 and not operands[0].is_constant:
            return operands[0]
        return self.integer(name, default, *instead)

    def reals_or_tensor(self, name: str, *instead: str) -> tuple[float, ...] | Operand:
        """A list of numbers; an operand, a list of float32, if it is computed."""
        operands = self._in_place(name, *instead)
        if all(operand.is_constant for operand in operands):
            return self.reals(name, (), *instead)
        lists = [self.as_type(self._as_list(o), ElementType.FLOAT32) for o in operands]
        return lists[0] if len(lists) == 1 else self.add(Concat, parts=lists, axis=0)

    def as_type(self, operand: Operand, element_type: ElementType) -> Operand:
        """The operand, with its elements converted if they are of another type."""
        if operand.type.element_type is element_type:
            return operand
        return self.add(Cast, operand, element_type)

    def integers_or_tensor(self, name: str, *instead: str) -> tuple[int, ...] | Operand:
        """A list of integers; an operand if it is computed."""
        operands = self._in_place(name, *instead)
        if all(operand.is_constant for operand in operands):
            return self.integers(name, None, *instead)
        lists = [self._as_list(operand) for operand in operands]
        return lists[0] if len(lists) == 1 else self.add(Concat, parts=_alike(lists), axis=0)

    def rank(self, operand: Operand) -> int:
        """The number of axes of an operand."""
        if operand.type.shape is None:
            raise UnsupportedError(f"{operand.name!r} is {operand.type}: its axes must be known")
        return len(operand.type.shape)

    def shape(self, operand: Operand) -> tuple[int, ...] | Operand:
        """The sizes of a tensor; an operand if they are not all known."""
        sizes = operand.type.static_shape
        return self.add(ShapeOf, operand) if sizes is None else sizes

    def expect(self, name: str, default: T, *allowed: T) -> None:
        """Refuse a parameter that is neither the default nor another of the values allowed."""
        value = self._one(name, type(default), default)
        if value not in (default, *allowed):
            raise UnsupportedError(f"{name} {value!r} cannot be expressed; export with {default!r}")

    def add(self, operator: type[StandardOperator], *arguments: object, **named: Any) -> Operand:
        """Build an operation on the way to the result."""
        return self.add_all(operator, *arguments, **named)[0]

    def add_all(
        self, operator: type[StandardOperator], *arguments: object, **named: Any
    ) -> tuple[Operand, ...]:
        """Like `add`, for an operator with any number of outputs; returns all of them."""
        builder = self._values.builder
        name = builder.unique_name(f"{self._operator.name}.{operator.type.lower()}")
        return builder.add_all(operator, *arguments, name=name, **named)

    def scan(
        self, state: Operand, scanned: Sequence[Operand], step: ScanStep, reverse: bool = False
    ) -> tuple[Operand, ...]:
        """Scan tensors along their first axis; return the final state and the scan outputs."""
        body = Builder(f"{self.name}.body")
        types = (TensorType(o.type.element_type, (o.type.shape or ())[1:]) for o in scanned)
        slices = [body.input(f"slice.{index}", type_) for index, type_ in enumerate(types)]
        inner_state = body.input("state", state.type)
        outputs = step(body, inner_state, slices)
        names = ["state.next", *(f"collected.{index}" for index in range(len(outputs) - 1))]
        inputs = {operand.name: operand for operand in (inner_state, *slices)}
        model = Model(body.name, inputs, body.operations, dict(zip(names, outputs, strict=True)))
        builder = self._values.builder
        scan = Scan.of(
            builder.unique_name(f"{self.name}.scan"),
            [state],
            scanned,
            (),
            model,
            input_reversed=(reverse,) * len(scanned),
            output_reversed=(reverse,) * (len(outputs) - 1),
        )
        return builder.insert(scan)

    def make(
        self,
        operator: type[StandardOperator],
        *arguments: object,
        output: str = "Out",
        **named: Any,
    ) -> None:
        """Build the operation that makes the variables in an output slot."""
        self._make(self._operator.outputs.get(output, ()), output, operator, arguments, named)

    def make_each(
        self,
        operator: type[StandardOperator],
        *arguments: object,
        outputs: Sequence[str],
        **named: Any,
    ) -> None:
        """Build the operation that makes one variable in each output slot.

        A slot may be empty, where nothing reads what would be in it.
        """
        slots = [self._operator.outputs.get(slot) or (None,) for slot in outputs]
        if any(len(variables) != 1 for variables in slots):
            raise ModelError(f"{', '.join(outputs)}: must be one tensor each")
        variables = [variable for (variable,) in slots]
        self._make(variables, ", ".join(outputs), operator, arguments, named)

    def _make(
        self,
        variables: Sequence[str | None],
        output: str,
        operator: type[StandardOperator],
        arguments: Sequence[object],
        named: Mapping[str, Any],
    ) -> None:
        name = self._operator.name
        operands = self._values.builder.add_all(
            operator,
            *arguments,
            name=name,
            outputs=[self._values.new_name(variable or name) for variable in variables],
            **named,
        )
        if len(operands) != len(variables):
            raise ModelError(f"{output}: is {len(variables)} tensors, but must be {len(operands)}")
        for variable, operand in zip(variables, operands, strict=True):
            if variable is not None:
                self._values.define(variable, operand)

    def filled(self) -> Mapping[str, Sequence[Operand]]:
        """The operands in each slot that is not empty."""
        return {slot: self.inputs(slot) for slot, names in self._operator.inputs.items() if names}

    def setting(self, name: str) -> object | None:
        """A parameter, whatever it is; `None` if it is left out."""
        if self._in_place(name):
            values = self._parameter(name) or ()
            return values[0] if len(values) == 1 else values
        return self._operator.attributes.get(name)

    def make_in_order(
        self, operator: type[PackagedOperator], arguments: Mapping[str, object]
    ) -> None:
        """Build the operation that makes all variables, in slots of its results' names.

        Where no slot is called so, the results are those of the slots in the file's order.
        """
        outputs = self._operator.outputs
        slots = list(outputs) if outputs.keys().isdisjoint(operator.results) else operator.results
        variables = [name for slot in slots for name in outputs.get(slot) or (None,)]
        results = self.add_all(operator, **arguments)
        if len(variables) > len(results):
            raise ModelError(f"{operator.type} makes {len(results)} tensors, not {len(variables)}")
        for variable, operand in zip(variables, results, strict=False):
            if variable is not None:
                self._values.define(variable, operand)

    def define(self, operand: Operand, output: str = "Out") -> None:
        """Let the variable in an output slot stand for an operand that there is already."""
        self._values.define(self._only_output(output), operand)

    def constant(self, array: Array, name: str) -> Operand:
        """A constant called by the name, or by one like it."""
        return self._values.builder.constant(array, self._values.new_name(name))

    def make_constant(self, array: Array) -> None:
        """Let the variable in the output slot stand for a constant."""
        self.define(self.constant(array, self._only_output("Out")))

    def stacks(self, parts: Sequence[Operand], output: str = "Out") -> None:
        """Record that the output which has been made is the list of these tensors without axes."""
        self._values.stacked[self._values[self._only_output(output)]] = parts

    def holds_sequences(self, slot: str) -> bool:
        """Tell whether the variable in an input slot is divided into sequences (LoD)."""
        return any(name in self._values.lods for name in self.variables(slot))

    def levels(self, slot: str = "X") -> Sequence[Operand]:
        """The offsets of the sequences in the variable of a slot, the coarsest level first."""
        return self.levels_of(slot)[0]

    def levels_of(self, slot: str) -> list[Sequence[Operand]]:
        """The levels of each of the variables in a slot."""
        lods = [(name, self._values.lods.get(name)) for name in self.variables(slot)]
        if not lods:
            raise ModelError(f"{slot}: is required")
        levels = []
        for name, lod in lods:
            if lod is None:
                raise UnsupportedError(
                    f"{slot}: nothing says which sequences {name!r} holds; declare the input that "
                    f"it comes from with its lod_level"
                )
            levels.append(lod.levels())
        return levels

    def set_levels(self, levels: Sequence[Operand], output: str = "Out") -> None:
        """Say which sequences the variables in an output slot hold."""
        for name in self.results(output):
            self.set_levels_of(name, levels)

    def set_levels_of(self, variable: str, levels: Sequence[Operand]) -> None:
        """Say which sequences one variable holds."""
        self._values.lods[variable] = Lod(levels)

    def is_read(self, output: str) -> bool:
        """Tell whether anything reads what is in an output slot, or the program hands it out."""
        return not self._values.read.isdisjoint(self._operator.outputs.get(output, ()))

    def count(self, output: str = "Out") -> int:
        """The number of tensors in an output slot."""
        return len(self._operator.outputs.get(output, ()))

    def _only_output(self, output: str) -> str:
        variables = self._operator.outputs.get(output, ())
        if len(variables) != 1:
            raise ModelError(f"{output}: is {len(variables)} tensors, but must be 1")
        return variables[0]

    def _one(self, name: str, kind: type[T], default: T | None, *instead: str) -> T:
        values = self._all(name, kind, None if default is None else (default,), *instead)
        if len(values) != 1:
            raise ModelError(f"{name}: must be one value, not {len(values)}")
        return values[0]

    def _all(
        self, name: str, kind: type[T], default: tuple[T, ...] | None, *instead: str
    ) -> tuple[T, ...]:
        values = self._parameter(name, *instead)
        if values is not None:
            return tuple(_typed(name, value, kind) for value in values)
        if default is None:
            raise ModelError(f"{name}: is required")
        return default

    def _parameter(self, name: str, *instead: str) -> Sequence[Scalar] | None:
        if operands := self._in_place(name, *instead):
            if not all(operand.is_constant for operand in operands):
                raise UnsupportedError(f"{name} is computed when the model runs; it must be known")
            return [entry for operand in operands for entry in elements(operand)]
        value = self._operator.attributes.get(name)
        return value if isinstance(value, tuple) or value is None else (value,)

    def _in_place(self, name: str, *instead: str) -> tuple[Operand, ...]:
        slots = (self.inputs(slot) for slot in (*instead, name))
        return next((operands for operands in slots if operands), ())

    def _as_list(self, operand: Operand) -> Operand:
        sizes = operand.type.static_shape
        if sizes is None or prod(sizes) > MAX_ELEMENTS:
            raise ModelError(f"{operand.name!r} is {operand.type}, not a short list")
        return operand if len(sizes) == 1 else self.add(Reshape, operand, (-1,))


def _integers(operand: Operand) -> Sequence[int | None]:
    if not operand.is_constant:
        return [None]
    return [entry if isinstance(entry, int) else None for entry in elements(operand)]


def _alike(lists: Sequence[Operand]) -> Sequence[Operand]:
    """The lists, with constants in the element type of those that are computed."""
    element_type = next(o.type.element_type for o in lists if not o.is_constant)
    return [
        operand
        if operand.value is None
        else constant(operand.value.astype(element_type.dtype), operand.name)
        for operand in lists
    ]


def _typed(name: str, value: Scalar, kind: type[T]) -> T:
    if isinstance(value, int) and not isinstance(value, bool) and kind is float:
        value = float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ModelError(f"{name}: {value!r} is not {_KINDS[kind]}")
    return value


TABLE: ImportTable[Callable[[Context], None]] = ImportTable()
"""The functions that import operators, by the operators' names in Paddle 2."""
imports = TABLE.imports
