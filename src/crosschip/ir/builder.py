"""Builder of models, which validates each operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from crosschip.ir.elements import Elements
from crosschip.ir.errors import ModelError
from crosschip.ir.frozen import set_field
from crosschip.ir.model import Model, Operand, Operation, Origin
from crosschip.ir.types import ALL_TYPES, Array, ElementType, Quantization, TensorType

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class OperatorClass(Protocol):
    """Operator class as the builder uses it: its name, and its slots bound to arguments."""

    type: str

    def __call__(
        self,
        name: str,
        inputs: tuple[Operand | None, ...],
        outputs: tuple[Operand, ...] = (),
        output_quantization: tuple[Quantization | None, ...] = (),
    ) -> Operation: ...

    def bind(
        self, name: str, arguments: Sequence[object], named: Mapping[str, object]
    ) -> tuple[Operand | None, ...]: ...


class Builder:
    """Builder of a model: checks each added operation and infers its output types.

    Attributes:
        operations: the operations added so far.
        origins: the operators of a model file that added operations get as their origins, unless
            they have some.

    Example:
        >>> from crosschip.ir import Builder, ElementType, TensorType, symbol
        >>> from crosschip.ops.standard.activation import LeakyRelu
        >>> b = Builder("tiny")
        >>> x = b.input("x", TensorType(ElementType.FLOAT32, (symbol("N"), 3)))
        >>> b.output("y", b.add(LeakyRelu, x, alpha=0.1))
        >>> print(b.build())
        model tiny
          input x: float32[N, 3]
          %leaky_relu_0 = LEAKY_RELU(input=%x, alpha=0.1): float32[N, 3]
          output y = %leaky_relu_0
    """

    def __init__(
        self, name: str = "model", prefix: str = "", used_names: set[str] | None = None
    ) -> None:
        """Start an empty model.

        Args:
            name: the model's name.
            prefix: the prefix of all generated names.
            used_names: operation names that are taken; names of added operations are inserted.
        """
        self.name = name
        self.prefix = prefix
        self.operations: list[Operation] = []
        self.origins: tuple[Origin, ...] = ()
        self._inputs: dict[str, Operand] = {}
        self._outputs: dict[str, Operand] = {}
        self._counts: dict[str, int] = {}
        self._used_names = set() if used_names is None else used_names

    def input(self, name: str, type: TensorType) -> Operand:
        """Declare a model input.

        Raises:
            ModelError: an input of this name exists.
        """
        if name in self._inputs:
            raise ModelError(f"the model {self.name!r} has two inputs called {name!r}; rename one")
        self._inputs[name] = operand = Operand(name, type)
        return operand

    def constant(
        self, value: ArrayLike | Elements, name: str = "", quantization: Quantization | None = None
    ) -> Operand:
        """Return a constant operand; an array is used without a copy.

        Raises:
            ModelError: no operand can have the array's element type.
        """
        name = name or self.unique_name("constant")
        try:
            array = value if isinstance(value, Elements) else np.asarray(value)
        except ValueError as error:
            raise ModelError(f"constant {name!r}: {error}") from None
        return constant(array, name, quantization)

    def add(
        self,
        operator: OperatorClass,
        *arguments: object,
        name: str = "",
        outputs: Sequence[str] = (),
        quantization: Quantization | None = None,
        **named: object,
    ) -> Operand:
        """Append an operation with one output and return that output.

        Args:
            operator: the operator's class.
            arguments: for its slots in order: operands, or plain values that become constants.
            name: the operation's name; generated if empty, and numbered if another has it.
            outputs: the name of the output operand; by default the operation's name.
            quantization: the quantization of the output, if inputs are quantized.
            named: for its slots by name.

        Raises:
            ModelError: an argument breaks a rule of the operator; the message names the slot.
        """
        return self.add_all(
            operator, *arguments, name=name, outputs=outputs, quantization=quantization, **named
        )[0]

    def add_all(
        self,
        operator: OperatorClass,
        *arguments: object,
        name: str = "",
        outputs: Sequence[str] = (),
        quantization: Quantization | tuple[Quantization | None, ...] | None = None,
        **named: object,
    ) -> tuple[Operand, ...]:
        """Append an operation and return all its outputs; see `add`.

        `quantization` applies to all outputs, or is a tuple with one entry per output.
        """
        name = self._free(name) if name else self.unique_name(operator.type.lower())
        if not isinstance(quantization, tuple):
            quantization = () if quantization is None else (quantization,)
        try:
            operation = operator(name, operator.bind(name, arguments, named), (), quantization)
        except ModelError as error:
            raise type(error)(f"{name!r}: {error}") from None
        return self.insert(operation, outputs)

    def insert(self, operation: Operation, outputs: Sequence[str] = ()) -> tuple[Operand, ...]:
        """Append an operation without outputs, infer its output types, and return its outputs.

        Args:
            operation: an operation without outputs.
            outputs: names of the output operands; by default derived from the operation's name.

        Raises:
            ModelError: the operation breaks a rule of its operator, or its name is taken.
        """
        try:
            types = operation.infer()
        except ModelError as error:
            raise type(error)(f"{operation.name!r}: {error}") from None
        names = outputs
        if len(names) < len(types):
            names = [*outputs, *_output_names(operation.name, len(types))[len(outputs) :]]
        results = tuple(map(Operand, names, types))
        set_field(operation, "outputs", results)  # still under construction
        self.append(operation)
        return results

    def append(self, operation: Operation) -> None:
        """Append an operation that is complete and checked.

        Raises:
            ModelError: an operation of its name exists.
        """
        if operation.name in self._used_names:
            raise ModelError(f"there are two operations called {operation.name!r}; rename one")
        self._used_names.add(operation.name)
        if self.origins:
            operation.coming_from(self.origins)
        self.operations.append(operation)

    def rename(self, names: Mapping[Operand, str], start: int = 0) -> Mapping[Operand, Operand]:
        """Rename operands that operations output.

        Args:
            names: the new names.
            start: the index of the first operation that reads or outputs one of them.

        Returns:
            The new operand for each old one.
        """
        renamed = {old: Operand(name, old.type) for old, name in names.items()}
        for index in range(start, len(self.operations)):
            operation = self.operations[index]
            inputs = tuple(o and renamed.get(o, o) for o in operation.inputs)
            outputs = tuple(renamed.get(o, o) for o in operation.outputs)
            if (inputs, outputs) != (operation.inputs, operation.outputs):
                self.operations[index] = operation.with_inputs(inputs, outputs)
        return renamed

    def output(self, name: str, operand: Operand) -> None:
        """Declare an operand as a model output.

        Raises:
            ModelError: an output of this name exists.
        """
        if name in self._outputs:
            raise ModelError(f"the model {self.name!r} has two outputs called {name!r}; rename one")
        self._outputs[name] = operand

    def build(self) -> Model:
        """Return the model of the operations added so far."""
        return Model(self.name, self._inputs, self.operations, self._outputs)

    def unique_name(self, stem: str) -> str:
        """Return a name for an operand or operation that this builder has not generated before."""
        while True:
            count = self._counts.get(stem, 0)
            self._counts[stem] = count + 1
            name = f"{self.prefix}{stem}_{count}"
            if name not in self._used_names:
                return name

    def _free(self, name: str) -> str:
        """Return an operation's name, with a number appended if it is taken."""
        free = name
        while free in self._used_names:
            count = self._counts[name] = self._counts.get(name, 0) + 1
            free = f"{name}_{count}"
        return free


def constant(
    array: Array | Elements, name: str, quantization: Quantization | None = None
) -> Operand:
    """Return a constant operand that holds the array itself, without a copy.

    Raises:
        ModelError: no operand can have the array's element type.
    """
    try:
        type_ = _plain_type(array.dtype, array.shape)
    except KeyError:
        known = ", ".join(sorted(map(str, ALL_TYPES)))
        raise ModelError(
            f"constant {name!r} has elements of type {array.dtype.str}; use one of: {known}"
        ) from None
    if quantization is not None:
        type_ = replace(type_, quantization=quantization)
    return Operand(name, type_, array)


@lru_cache(maxsize=1024)
def _plain_type(dtype: np.dtype[Any], shape: tuple[int, ...]) -> TensorType:
    """Return the type of an unquantized array; constants of equal type share the object."""
    return TensorType(ElementType.of(dtype), shape)


def _output_names(name: str, count: int) -> list[str]:
    return [name] if count == 1 else [f"{name}.{index}" for index in range(count)]
