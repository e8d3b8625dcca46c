"""Examples of operators: uses of each, and the models made of them.

Documentation, tests and `crosschip ops` run them. Each is a set of arguments by slot:

    examples(
        Reshape,
        example(input=random(2, 3, 8, 8), shape=(6, -1)),
        example(input=random(4, dtype=ElementType.INT32), shape=model_input([2, 2])),
    )

`random` and `given` make inputs of the model; anything else is a constant of it. The examples of
the operators of `crosschip.ops.standard.FAMILY` are in `crosschip.ops.examples.FAMILY`, which is
imported when they are first asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike

from crosschip.ir import (
    Array,
    Builder,
    Dim,
    ElementType,
    Model,
    Operand,
    Quantization,
    TensorType,
    symbol,
)
from crosschip.ir.dataclass import dataclass
from crosschip.ir.types import BOOLEANS, FLOATS
from crosschip.ops.definition.families import import_family

if TYPE_CHECKING:
    from crosschip.ops.definition.operator import Operator

Example = Mapping[str, object]
"""The arguments of one use of an operator, by slot."""

_examples: dict[type[Operator], tuple[Example, ...]] = {}


@dataclass(frozen=True, slots=True)
class Sample:
    """A model input with elements for it; see `random` and `given`.

    Attributes:
        type: its type, of static shape.
        low: the least that a random element can be.
        high: what random elements stay below.
        value: the elements, if they are given.
    """

    type: TensorType
    low: float = 0
    high: float = 0
    value: Array | None = None

    def array(self, generator: np.random.Generator) -> Array:
        """Elements for it."""
        if self.value is not None:
            return self.value
        drawn = generator.uniform(self.low, self.high, cast(tuple[int, ...], self.type.shape))
        element_type = self.type.element_type
        if element_type in BOOLEANS:
            return np.asarray(drawn > (self.low + self.high) / 2)
        values = np.asarray(drawn if element_type in FLOATS else np.floor(drawn))
        return values.astype(element_type.dtype)

    def named(self, name: str) -> TensorType:
        """Its type, with a name for each size if the elements are not given: `input_0`, …."""
        if self.value is not None:
            return self.type
        shape: tuple[Dim, ...] = tuple(
            symbol(f"{name}_{axis}") for axis in range(len(self.type.shape or ()))
        )
        return TensorType(self.type.element_type, shape, self.type.quantization)


def example(**arguments: object) -> Example:
    """One use of an operator; `quantization` is the output's, as for `Builder.add`."""
    return arguments


def random(
    *shape: int,
    dtype: ElementType = ElementType.FLOAT32,
    low: float = -2,
    high: float = 2,
    quantization: Quantization | None = None,
) -> Sample:
    """A model input with elements drawn evenly from `[low, high)`; about half true if boolean."""
    return Sample(TensorType(dtype, shape, quantization), low, high)


def model_input(value: ArrayLike, quantization: Quantization | None = None) -> Sample:
    """A model input with elements that matter: plain integers become int64, plain reals float32."""
    array = np.asarray(value)
    if array.dtype == np.float64 and not isinstance(value, np.ndarray):
        array = array.astype(np.float32)
    type_ = TensorType(ElementType.of(array.dtype), array.shape, quantization)
    return Sample(type_, value=array)


def examples(operator: type[Operator], *uses: Example) -> None:
    """Register the examples of an operator; their numbers are their places here."""
    _examples[operator] = uses


def examples_of(operator: type[Operator]) -> tuple[Example, ...]:
    """The examples of an operator; those that are made up for it if none are registered."""
    import_family("crosschip.ops.examples", operator)
    return _examples.get(operator) or tuple(operator.drawn_examples())


def samples(arguments: Example) -> Iterator[tuple[str, Sample]]:
    """The inputs of an example's model, by name: after the slot, with a number if it takes many."""
    for slot, argument in arguments.items():
        if isinstance(argument, Sample):
            yield slot, argument
        elif isinstance(argument, list):
            for index, part in enumerate(argument):
                if isinstance(part, Sample):
                    yield f"{slot}.{index}", part


def arrays_for(arguments: Example, seed: int = 0) -> dict[str, Array]:
    """Inputs to run an example's model on."""
    generator = np.random.default_rng(seed)
    return {name: sample.array(generator) for name, sample in samples(arguments)}


def model_of(operator: type[Operator], arguments: Example, *, named: bool = False) -> Model:
    """The model of one operation that an example describes; its outputs are `output0`, ….

    Args:
        operator: whose example it is.
        arguments: the example; a list that holds a `Sample` fills a slot that takes many tensors.
        named: whether to give the sizes of random inputs as names.
    """
    b = Builder(operator.type.lower())
    inputs: dict[str, Operand] = {
        name: b.input(name, sample.named(name) if named else sample.type)
        for name, sample in samples(arguments)
    }
    bound: dict[str, Any] = {
        slot: _filled(b, inputs, slot, value) for slot, value in arguments.items()
    }
    results = b.add_all(operator, name="example", **bound)
    for index, operand in enumerate(results):
        b.output(f"output{index}", operand)
    return b.build()


def _filled(b: Builder, inputs: Mapping[str, Operand], slot: str, argument: object) -> object:
    if isinstance(argument, Sample):
        return inputs[slot]
    if isinstance(argument, list) and any(isinstance(part, Sample) for part in argument):
        return [
            inputs[f"{slot}.{index}"] if isinstance(part, Sample) else _as_operand(b, part)
            for index, part in enumerate(argument)
        ]
    return argument


def _as_operand(b: Builder, value: Any) -> Operand:
    return value if isinstance(value, Operand) else b.constant(value)
