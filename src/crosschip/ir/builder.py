"""Building a model, one validated operation at a time."""

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
    """An operator as the builder sees it: it has a name, and fills its slots with arguments."""

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
    """Grows a model; every operation is checked and its output types inferred as it is added.

    Attributes:
        operations: those so far.
        origins: the operators of a file that what is appended stands for, unless it has its own.

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
            prefix: what every name that the builder makes up starts with.
            used_names: the names that no operation may have; those that it gets are added.
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
            ModelError: there is an input of this name already.
        """
        if name in self._inputs:
            raise ModelError(f"the model {self.name!r} has two inputs called {name!r}; rename one")
        self._inputs[name] = operand = Operand(name, type)
        return operand

    def constant(
        self, value: ArrayLike | Elements, name: str = "", quantization: Quantization | None = None
    ) -> Operand:
        """A constant operand; an array is kept as it is, without a copy.

        Raises:
            ModelError: the elements are of a type that no operand can hold.
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
        """Append an operation that makes one output and return that output.

        Args:
            operator: the operator's class.
            arguments: for its slots in order: operands, or plain values that become constants.
            name: what messages call the operation; made up if not given, and followed by a number
                if another operation has it.
            outputs: the name of the operand that it makes; after the operation if not given.
            quantization: how the output stands for reals, if inputs are quantized.
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
        """Like `add`, for an operator with any number of outputs; returns all of them.

        The quantization is that of every output, or a tuple holds one for each.
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
        """Append an operation made elsewhere, infer what it makes, and return that.

        Args:
            operation: one whose outputs are not there yet.
            outputs: the names of the operands that it makes; after the operation if not given.

        Raises:
            ModelError: the operation breaks a rule of its operator, or has the name of another.
        """
        try:
            types = operation.infer()
        except ModelError as error:
            raise type(error)(f"{operation.name!r}: {error}") from None
        names = outputs
        if len(names) < len(types):
            names = [*outputs, *_output_names(operation.name, len(types))[len(outputs) :]]
        results = tuple(map(Operand, names, types))
        set_field(operation, "outputs", results)  # it is still in the making
        self.append(operation)
        return results

    def append(self, operation: Operation) -> None:
        """Append an operation that has been built and checked elsewhere.

        Raises:
            ModelError: there is an operation of its name already.
        """
        if operation.name in self._used_names:
            raise ModelError(f"there are two operations called {operation.name!r}; rename one")
        self._used_names.add(operation.name)
        if self.origins:
            operation.coming_from(self.origins)
        self.operations.append(operation)

    def rename(self, names: Mapping[Operand, str], start: int = 0) -> Mapping[Operand, Operand]:
        """Give operands that operations make other names.

        Args:
            names: the new names.
            start: the index of the first operation that makes or reads one of them.

        Returns:
            The operands that have taken their places.
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
        """Hand an operand out as a model output.

        Raises:
            ModelError: there is an output of this name already.
        """
        if name in self._outputs:
            raise ModelError(f"the model {self.name!r} has two outputs called {name!r}; rename one")
        self._outputs[name] = operand

    def build(self) -> Model:
        """The model as built so far."""
        return Model(self.name, self._inputs, self.operations, self._outputs)

    def unique_name(self, stem: str) -> str:
        """A name for an operand or operation that this builder has not given before."""
        while True:
            count = self._counts.get(stem, 0)
            self._counts[stem] = count + 1
            name = f"{self.prefix}{stem}_{count}"
            if name not in self._used_names:
                return name

    def _free(self, name: str) -> str:
        """The name for another operation: this one, or one like it if it is taken."""
        free = name
        while free in self._used_names:
            count = self._counts[name] = self._counts.get(name, 0) + 1
            free = f"{name}_{count}"
        return free


def constant(
    array: Array | Elements, name: str, quantization: Quantization | None = None
) -> Operand:
    """An operand that holds the array itself.

    Raises:
        ModelError: the elements are of a type that no operand can hold.
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
    """The type of reals in an array; of many constants that are alike there is one."""
    return TensorType(ElementType.of(dtype), shape)


def _output_names(name: str, count: int) -> list[str]:
    return [name] if count == 1 else [f"{name}.{index}" for index in range(count)]
