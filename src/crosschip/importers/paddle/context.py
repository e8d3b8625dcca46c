"""The context of an operator's import: checked access to its inputs and attributes.

`TABLE` holds the functions that import operators, and `imports` registers one.
"""

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
    """One operator of a program: its inputs, its parameters, and the operations built for it.

    A parameter is an attribute or a tensor. The tensor is in an input slot of the same name (most
    parameters in Paddle 3), or in one of the slots `tensor_slots`. Methods that return Python
    values require a constant tensor.

    All methods raise `ModelError` if a value is missing or has the wrong type, and
    `UnsupportedError` if it cannot be expressed; the message names the slot or attribute.
    """

    __slots__ = ("_operator", "_values")

    def __init__(self, operator: Operator, values: Values) -> None:
        self._operator = operator
        self._values = values

    @property
    def blocks(self) -> Sequence[Block]:
        """The blocks of a control flow operator."""
        return self._operator.blocks

    @property
    def values(self) -> Values:
        """The values of the program's variables at this operator."""
        return self._values

    @property
    def name(self) -> str:
        """The name of the operation to build."""
        return self._operator.name

    @property
    def kind(self) -> str:
        """The operator's type in Paddle 2."""
        return self._operator.type

    @property
    def origin(self) -> Origin:
        """The origin of the operations built for the operator."""
        return self._operator.origin

    def variables(self, slot: str) -> Sequence[str]:
        """Return the names of the variables in an input slot."""
        return self._operator.inputs.get(slot, ())

    def output_names(self, slot: str = "Out") -> Sequence[str]:
        """Return the names of the variables in an output slot."""
        return self._operator.outputs.get(slot, ())

    def inputs(self, slot: str) -> tuple[Operand, ...]:
        """Return the operands in a slot, in order."""
        return tuple([self._values[name] for name in self._operator.inputs.get(slot, ())])

    def optional_input(self, slot: str) -> Operand | None:
        """Return the only operand in a slot; `None` if the slot is empty."""
        operands = self.inputs(slot)
        if len(operands) > 1:
            raise ModelError(f"{slot}: takes one tensor, not {len(operands)}")
        return operands[0] if operands else None

    def input(self, slot: str = "X") -> Operand:
        """Return the only operand in a slot."""
        operand = self.optional_input(slot)
        if operand is None:
            raise ModelError(f"{slot}: is required")
        return operand

    def flag(self, name: str, default: bool | None = None) -> bool:
        """Return a boolean parameter."""
        return self._single(name, bool, default)

    def integer(self, name: str, default: int | None = None, *tensor_slots: str) -> int:
        """Return an integer parameter."""
        return self._single(name, int, default, *tensor_slots)

    def integers(
        self, name: str, default: tuple[int, ...] | None = None, *tensor_slots: str
    ) -> tuple[int, ...]:
        """Return a parameter that is a list of integers."""
        return self._list(name, int, default, *tensor_slots)

    def real(self, name: str, default: float | None = None, *tensor_slots: str) -> float:
        """Return a float parameter."""
        return self._single(name, float, default, *tensor_slots)

    def reals(
        self, name: str, default: tuple[float, ...] | None = None, *tensor_slots: str
    ) -> tuple[float, ...]:
        """Return a parameter that is a list of floats."""
        return self._list(name, float, default, *tensor_slots)

    def numbers(self, name: str) -> Sequence[bool | int | float]:
        """Return a parameter that is a list of numbers of any type; empty if it is missing."""
        values = self._parameter(name) or ()
        numbers = [value for value in values if isinstance(value, bool | int | float)]
        if len(numbers) != len(values):
            raise ModelError(f"{name}: has elements that are no numbers")
        return numbers

    def text(self, name: str, default: str | None = None) -> str:
        """Return a string parameter."""
        return self._single(name, str, default)

    def option(self, name: str, options: Mapping[str, Option], default: str) -> Option:
        """Return the option that a string parameter names."""
        key = self.text(name, default)
        if key not in options:
            raise ModelError(f"{name}: {key!r} is not one of {', '.join(options)}")
        return options[key]

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
        """Return an element type; `None` if the parameter is missing or undefined."""
        values = self._parameter(name)
        if values and isinstance(values[0], ElementType):
            return values[0]
        code = self.integer(name, -1)
        return None if code < 0 else tensor_types.from_code(code)

    def partial_integers(self, name: str, *tensor_slots: str) -> Sequence[int | None] | None:
        """Return a list of integers with `None` for computed ones; `None` if all are computed."""
        operands: Sequence[Operand] = self._parameter_operands(name, *tensor_slots)
        if not operands:
            return self.integers(name)
        if len(operands) == 1 and not operands[0].is_constant:
            operands = self._values.stacked.get(operands[0], ())
            if not operands:
                return None
        return [
            entry if isinstance(entry, int) else None
            for operand in operands
            for entry in (elements(operand) if operand.is_constant else [None])
        ]

    def real_or_tensor(
        self, name: str, default: float | None = None, *tensor_slots: str
    ) -> float | Operand:
        """Return a float parameter; an operand of float32 if it is computed."""
        operands = self._parameter_operands(name, *tensor_slots)
        if len(operands) == 1 and not operands[0].is_constant:
            return self.as_type(operands[0], ElementType.FLOAT32)
        return self.real(name, default, *tensor_slots)

    def integer_or_tensor(self, name: str, default: int, *tensor_slots: str) -> int | Operand:
        """Return an integer parameter; an operand if it is computed."""
        operands = self._parameter_operands(name, *tensor_slots)
        if len(operands) == 1 and not operands[0].is_constant:
            return operands[0]
        return self.integer(name, default, *tensor_slots)

    def reals_or_tensor(self, name: str, *tensor_slots: str) -> tuple[float, ...] | Operand:
        """Return a list of floats; a float32 operand [n] if it is computed."""
        operands = self._parameter_operands(name, *tensor_slots)
        if all(operand.is_constant for operand in operands):
            return self.reals(name, (), *tensor_slots)
        lists = [self.as_type(self._as_list(o), ElementType.FLOAT32) for o in operands]
        return lists[0] if len(lists) == 1 else self.add(Concat, parts=lists, axis=0)

    def as_type(self, operand: Operand, element_type: ElementType) -> Operand:
        """Cast an operand to an element type."""
        if operand.type.element_type is element_type:
            return operand
        return self.add(Cast, operand, element_type)

    def integers_or_tensor(self, name: str, *tensor_slots: str) -> tuple[int, ...] | Operand:
        """Return a list of integers; an operand [n] if it is computed."""
        operands = self._parameter_operands(name, *tensor_slots)
        if all(operand.is_constant for operand in operands):
            return self.integers(name, None, *tensor_slots)
        lists = [self._as_list(operand) for operand in operands]
        return lists[0] if len(lists) == 1 else self.add(Concat, parts=_unify_types(lists), axis=0)

    def rank(self, operand: Operand) -> int:
        """Return the rank of an operand, which must be known."""
        if operand.type.shape is None:
            raise UnsupportedError(f"{operand.name!r} is {operand.type}: its axes must be known")
        return len(operand.type.shape)

    def shape(self, operand: Operand) -> tuple[int, ...] | Operand:
        """Return the shape of a tensor; an operand if not all sizes are known."""
        sizes = operand.type.static_shape
        return self.add(ShapeOf, operand) if sizes is None else sizes

    def expect(self, name: str, default: T, *allowed: T) -> None:
        """Raise UnsupportedError unless a parameter has the default or another allowed value."""
        value = self._single(name, type(default), default)
        if value not in (default, *allowed):
            raise UnsupportedError(f"{name} {value!r} cannot be expressed; export with {default!r}")

    def add(self, operator: type[StandardOperator], *arguments: object, **named: Any) -> Operand:
        """Build an operation whose output is not a variable of the program; return the output."""
        return self.add_all(operator, *arguments, **named)[0]

    def add_all(
        self, operator: type[StandardOperator], *arguments: object, **named: Any
    ) -> tuple[Operand, ...]:
        """Build such an operation, and return all its outputs."""
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
        """Build the operation that defines the variables in an output slot."""
        self._make(self._operator.outputs.get(output, ()), output, operator, arguments, named)

    def make_each(
        self,
        operator: type[StandardOperator],
        *arguments: object,
        outputs: Sequence[str],
        **named: Any,
    ) -> None:
        """Build the operation that defines the one variable in each output slot.

        A slot may be empty if no operator reads the output.
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

    def inputs_by_slot(self) -> Mapping[str, Sequence[Operand]]:
        """Return the operands in each slot that is not empty."""
        return {slot: self.inputs(slot) for slot, names in self._operator.inputs.items() if names}

    def raw_parameter(self, name: str) -> object | None:
        """Return a parameter of any type; `None` if it is missing."""
        if self._parameter_operands(name):
            values = self._parameter(name) or ()
            return values[0] if len(values) == 1 else values
        return self._operator.attributes.get(name)

    def make_in_order(
        self, operator: type[PackagedOperator], arguments: Mapping[str, object]
    ) -> None:
        """Build the operation that defines the variables in all output slots.

        The slots have the names of the operator's results; if no slot has such a name, results
        correspond to the slots in the file's order.
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
        """Set the variable in an output slot to an existing operand."""
        self._values.define(self._only_output(output), operand)

    def constant(self, array: Array, name: str) -> Operand:
        """Add a constant to the model; its name is made unique."""
        return self._values.builder.constant(array, self._values.new_name(name))

    def make_constant(self, array: Array) -> None:
        """Set the variable in the output slot `Out` to a constant."""
        self.define(self.constant(array, self._only_output("Out")))

    def record_stack(self, parts: Sequence[Operand], output: str = "Out") -> None:
        """Record that an output variable is a stack of these scalars; see `partial_integers`."""
        self._values.stacked[self._values[self._only_output(output)]] = parts

    def holds_sequences(self, slot: str) -> bool:
        """Return whether the variable in an input slot has LoD levels."""
        return any(name in self._values.lods for name in self.variables(slot))

    def levels(self, slot: str = "X") -> Sequence[Operand]:
        """Return the LoD levels, coarsest first, of the first variable in a slot."""
        return self.levels_of(slot)[0]

    def levels_of(self, slot: str) -> list[Sequence[Operand]]:
        """Return the LoD levels of each variable in a slot."""
        lods = [(name, self._values.lods.get(name)) for name in self.variables(slot)]
        if not lods:
            raise ModelError(f"{slot}: is required")
        levels = []
        for name, lod in lods:
            if lod is None:
                raise UnsupportedError(
                    f"{slot}: the LoD of {name!r} is unknown; declare the lod_level of the input "
                    f"that it is computed from"
                )
            levels.append(lod.levels())
        return levels

    def set_levels(self, levels: Sequence[Operand], output: str = "Out") -> None:
        """Set the LoD levels of the variables in an output slot."""
        for name in self.output_names(output):
            self.set_levels_of(name, levels)

    def set_levels_of(self, variable: str, levels: Sequence[Operand]) -> None:
        """Set the LoD levels of a variable."""
        self._values.lods[variable] = Lod(levels)

    def is_read(self, output: str) -> bool:
        """Return whether a variable in an output slot is read or an output of the program."""
        return not self._values.read.isdisjoint(self._operator.outputs.get(output, ()))

    def count(self, output: str = "Out") -> int:
        """Return the number of variables in an output slot."""
        return len(self._operator.outputs.get(output, ()))

    def _only_output(self, output: str) -> str:
        variables = self._operator.outputs.get(output, ())
        if len(variables) != 1:
            raise ModelError(f"{output}: is {len(variables)} tensors, but must be 1")
        return variables[0]

    def _single(self, name: str, kind: type[T], default: T | None, *tensor_slots: str) -> T:
        values = self._list(name, kind, None if default is None else (default,), *tensor_slots)
        if len(values) != 1:
            raise ModelError(f"{name}: must be one value, not {len(values)}")
        return values[0]

    def _list(
        self, name: str, kind: type[T], default: tuple[T, ...] | None, *tensor_slots: str
    ) -> tuple[T, ...]:
        values = self._parameter(name, *tensor_slots)
        if values is not None:
            return tuple(_check_type(name, value, kind) for value in values)
        if default is None:
            raise ModelError(f"{name}: is required")
        return default

    def _parameter(self, name: str, *tensor_slots: str) -> Sequence[Scalar] | None:
        if operands := self._parameter_operands(name, *tensor_slots):
            if not all(operand.is_constant for operand in operands):
                raise UnsupportedError(f"{name} is computed when the model runs; it must be known")
            return [entry for operand in operands for entry in elements(operand)]
        value = self._operator.attributes.get(name)
        return value if isinstance(value, tuple) or value is None else (value,)

    def _parameter_operands(self, name: str, *tensor_slots: str) -> tuple[Operand, ...]:
        slots = (self.inputs(slot) for slot in (*tensor_slots, name))
        return next((operands for operands in slots if operands), ())

    def _as_list(self, operand: Operand) -> Operand:
        sizes = operand.type.static_shape
        if sizes is None or prod(sizes) > MAX_ELEMENTS:
            raise ModelError(f"{operand.name!r} is {operand.type}, not a short list")
        return operand if len(sizes) == 1 else self.add(Reshape, operand, (-1,))


def _unify_types(lists: Sequence[Operand]) -> Sequence[Operand]:
    """Cast the constants among the lists to the element type of the others."""
    element_type = next(o.type.element_type for o in lists if not o.is_constant)
    return [
        operand
        if operand.value is None
        else constant(operand.value.astype(element_type.dtype), operand.name)
        for operand in lists
    ]


def _check_type(name: str, value: Scalar, kind: type[T]) -> T:
    if isinstance(value, int) and not isinstance(value, bool) and kind is float:
        value = float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ModelError(f"{name}: {value!r} is not {_KINDS[kind]}")
    return value


TABLE: ImportTable[Callable[[Context], None]] = ImportTable()
"""The functions that import operators, by operator types of Paddle 2."""
imports = TABLE.imports
