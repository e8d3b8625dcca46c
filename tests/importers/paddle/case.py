"""Single operators as both formats write them, with what they are to compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from tests.importers.paddle.writers import Paddle2Writer, Paddle3Writer, list_type, tensor_type

from crosschip.ir import Array

Slots = Mapping[str, str | Sequence[str]]
Item = str | float | Sequence[int] | Sequence[str] | None
"""An input of an operator of Paddle 3: a variable, several, a constant, or none."""


@dataclass(frozen=True)
class Case:
    """An operator that reads inputs and parameters by name and makes one or more tensors.

    Attributes:
        paddle2: its type, the variables by slot, the output slots, its attributes; the first of
            the output slots has the expected outputs, the others are for training.
        paddle3: its name, its inputs in order, its attributes.
        expected: the outputs.
    """

    inputs: Mapping[str, Array]
    parameters: Mapping[str, Array]
    paddle2: tuple[str, Slots, str, Mapping[str, Any]]
    paddle3: tuple[str, Sequence[Item], Mapping[str, Any]]
    expected: Sequence[Array]

    def write_paddle2(self, folder: Path) -> Path:
        """Write a model of the operator alone."""
        writer = Paddle2Writer()
        for name, array in self.inputs.items():
            writer.input(name, str(array.dtype), _open(array))
        for name, array in self.parameters.items():
            writer.parameter(name, array)
        type, slots, outputs, attributes = self.paddle2
        output, *others = outputs.split()
        made = [f"y{i}" for i in range(len(self.expected))]
        for name, array in zip(made, self.expected, strict=True):
            writer.variable(name, str(array.dtype), array.shape)
        for slot in others:
            writer.variable(slot, "float32", [])
        made_besides = {slot: slots.get(slot.removesuffix("Out"), slot) for slot in others}
        writer.operator(type, slots, {output: made} | made_besides, attributes)
        for name in made:
            writer.output(name)
        return writer.save(folder)

    def write_paddle3(self, folder: Path) -> Path:
        """Write a model of the operator alone."""
        writer = Paddle3Writer()
        numbers = {name: writer.parameter(name, array) for name, array in self.parameters.items()}
        for name, array in self.inputs.items():
            numbers[name] = writer.input(name, str(array.dtype), _open(array))
        name, items, attributes = self.paddle3
        read = [_number(writer, item, numbers) for item in items]
        types = [tensor_type(str(array.dtype), array.shape) for array in self.expected]
        if len(types) == 1:
            types += [tensor_type("float32", [])] * (len(self.paddle2[2].split()) - 1)
            writer.output(writer.operator(f"1.{name}", read, attributes, types))
        else:
            made = writer.operator(f"1.{name}", read, attributes, [list_type(*types)])
            first = writer.operator("0.split", [made], {}, types)
            for i in range(len(types)):
                writer.output(first + i)
        return writer.save(folder)


def unary(
    type: str,
    name: str,
    expected: Callable[[Array], Array | Sequence[Array]],
    attributes: Mapping[str, Any] | None = None,
    attributes3: Mapping[str, Any] | None = None,
    *,
    x: Array,
    arguments: Sequence[Item] = (),
    slot: str = "X",
    output: str = "Out",
) -> Case:
    """A case of an operator that reads one tensor; in Paddle 3, constants besides.

    Args:
        type: the operator in Paddle 2.
        name: the operator in Paddle 3.
        expected: what it makes of `x`.
        attributes: in Paddle 2.
        attributes3: in Paddle 3, if they are others.
        x: the input.
        arguments: the other inputs in Paddle 3.
        slot: the input slot in Paddle 2.
        output: the output slots in Paddle 2.
    """
    found = expected(x)
    return Case(
        inputs={"x": x},
        parameters={},
        paddle2=(type, {slot: "x"}, output, attributes or {}),
        paddle3=(name, ["x", *arguments], attributes or {} if attributes3 is None else attributes3),
        expected=[found] if isinstance(found, np.ndarray | np.generic) else found,
    )


def normal(seed: int, *shape: int) -> Array:
    """Seeded random numbers."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def _open(array: Array) -> list[int]:
    """The array's shape, with the size of the first axis left open."""
    return [-1, *array.shape[1:]]


def _number(writer: Paddle3Writer, item: Item, numbers: Mapping[str, int]) -> int:
    match item:
        case None:
            return 0
        case str():
            return numbers[item]
        case [str(), *_]:
            return writer.combine([numbers[str(name)] for name in item])
        case _:
            return writer.constant(cast("float | Sequence[int]", item))
