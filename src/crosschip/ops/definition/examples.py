"""Examples of operators, and the models that they describe.

Documentation, tests and `crosschip ops` run them. An example is a set of arguments by slot:

    examples(
        Reshape,
        example(input=random(2, 3, 8, 8), shape=(6, -1)),
        example(input=random(4, dtype=ElementType.INT32), shape=model_input([2, 2])),
    )

`random` and `model_input` declare model inputs; all other arguments are constants. The examples of
operators in `crosschip.ops.standard.FAMILY` are in `crosschip.ops.examples.FAMILY`, which is
imported when they are first requested.
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
from crosschip.ops.definition.registry import import_family

if TYPE_CHECKING:
    from crosschip.ops.definition.operator import Operator

Example = Mapping[str, object]
"""Arguments of one use of an operator, by slot."""

_examples: dict[type[Operator], tuple[Example, ...]] = {}


@dataclass(frozen=True, slots=True)
class Sample:
    """Model input with elements to run it on; see `random` and `model_input`.

    Attributes:
        type: its type, of static shape.
        low: the smallest random element.
        high: the exclusive upper bound of random elements.
        value: the elements; `None` for random ones.
        ascending: whether random elements are in ascending order along the last axis.
    """

    type: TensorType
    low: float = 0
    high: float = 0
    value: Array | None = None
    ascending: bool = False

    def array(self, generator: np.random.Generator) -> Array:
        """Return elements of the input."""
        if self.value is not None:
            return self.value
        elements = self.elements(generator)
        return np.sort(elements, axis=-1) if self.ascending and elements.ndim else elements

    def elements(self, generator: np.random.Generator) -> Array:
        """Return random elements in any order."""
        elements = generator.uniform(self.low, self.high, cast(tuple[int, ...], self.type.shape))
        element_type = self.type.element_type
        if element_type in BOOLEANS:
            return np.asarray(elements > (self.low + self.high) / 2)
        values = np.asarray(elements if element_type in FLOATS else np.floor(elements))
        return values.astype(element_type.dtype)

    def named(self, name: str) -> TensorType:
        """Return its type, with named sizes such as `input_0` if the elements are random."""
        if self.value is not None:
            return self.type
        shape: tuple[Dim, ...] = tuple(
            symbol(f"{name}_{axis}") for axis in range(len(self.type.shape or ()))
        )
        return TensorType(self.type.element_type, shape, self.type.quantization)


def example(**arguments: object) -> Example:
    """Return an example; `quantization` is that of the output, as in `Builder.add`."""
    return arguments


def random(
    *shape: int,
    dtype: ElementType = ElementType.FLOAT32,
    low: float = -2,
    high: float = 2,
    quantization: Quantization | None = None,
    ascending: bool = False,
) -> Sample:
    """Return an input with elements uniform in `[low, high)`; half of booleans are true.

    With `ascending`, the elements are sorted along the last axis.
    """
    return Sample(TensorType(dtype, shape, quantization), low, high, ascending=ascending)


def model_input(value: ArrayLike, quantization: Quantization | None = None) -> Sample:
    """Return an input with these elements; Python integers become int64, Python floats float32."""
    array = np.asarray(value)
    if array.dtype == np.float64 and not isinstance(value, np.ndarray):
        array = array.astype(np.float32)
    type_ = TensorType(ElementType.of(array.dtype), array.shape, quantization)
    return Sample(type_, value=array)


def examples(operator: type[Operator], *uses: Example) -> None:
    """Register the examples of an operator; the index of an example is its number."""
    _examples[operator] = uses


def examples_of(operator: type[Operator]) -> tuple[Example, ...]:
    """Return the examples of an operator; generated ones if none are registered."""
    import_family("crosschip.ops.examples", operator)
    return _examples.get(operator) or tuple(operator.generated_examples())


def samples(arguments: Example) -> Iterator[tuple[str, Sample]]:
    """Yield the inputs of an example's model by slot name, with an index in a variadic slot."""
    for slot, argument in arguments.items():
        if isinstance(argument, Sample):
            yield slot, argument
        elif isinstance(argument, list):
            for index, part in enumerate(argument):
                if isinstance(part, Sample):
                    yield f"{slot}.{index}", part


def arrays_for(arguments: Example, seed: int = 0) -> dict[str, Array]:
    """Return arrays to run an example's model on."""
    generator = np.random.default_rng(seed)
    return {name: sample.array(generator) for name, sample in samples(arguments)}


def model_of(operator: type[Operator], arguments: Example, *, named: bool = False) -> Model:
    """Return the model of one operation that an example describes, with outputs `output0`, ….

    Args:
        operator: the operator.
        arguments: the example; a list that contains a `Sample` fills a variadic slot.
        named: give names to the sizes of random inputs.
    """
    b = Builder(operator.type.lower())
    inputs: dict[str, Operand] = {
        name: b.input(name, sample.named(name) if named else sample.type)
        for name, sample in samples(arguments)
    }
    bound: dict[str, Any] = {
        slot: _bind_argument(b, inputs, slot, value) for slot, value in arguments.items()
    }
    results = b.add_all(operator, name="example", **bound)
    for index, operand in enumerate(results):
        b.output(f"output{index}", operand)
    return b.build()


def _bind_argument(
    b: Builder, inputs: Mapping[str, Operand], slot: str, argument: object
) -> object:
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
