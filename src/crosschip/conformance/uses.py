"""Uses of an operator that the kit draws and simplifies: types, sizes, parameters and data."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from crosschip.conformance.draw import Draw
from crosschip.conformance.variations import Variation
from crosschip.ir import Model, ModelError
from crosschip.ir.builder import constant
from crosschip.ops import Operator
from crosschip.ops.definition.examples import Example, Sample, model_of, samples

MOST_ELEMENTS = 1 << 13
"""The maximum number of elements of a drawn tensor."""

_MOST_OUTPUTS = 1 << 17
_MOST_AXES = 8


@dataclass(frozen=True, slots=True)
class Use:
    """A use of an operator, and how its program is run.

    Attributes:
        operator: the operator's class.
        arguments: the values of its slots; all samples are `Draw`s.
        named: whether the sizes of random inputs are dynamic.
        loaded: whether the program runs from its saved form.
        runs: further runs of the program: other data, and other sizes where they are dynamic.
    """

    operator: type[Operator]
    arguments: Example
    named: bool = False
    loaded: bool = False
    runs: tuple[Example, ...] = ()

    def variation(self, words: str) -> Variation:
        """Return the use as a variation: constant draws become constants."""
        filled = {name: _draw_constants(name, value) for name, value in self.arguments.items()}
        runs = tuple(
            {n: v for n, v in run.items() if _is_sampled(filled.get(n))} for run in self.runs
        )
        constants = {n: d for n, d in draws(self.arguments).items() if d.constant}
        drawn = frozenset(name for name, draw in constants.items() if draw.value is None)
        return Variation(words, filled, self.named, runs, drawn)

    def __str__(self) -> str:
        parts = [f"{self.operator.type}({_texts(self.arguments)})"]
        parts += ["with open sizes"] if self.named else []
        parts += ["loaded"] if self.loaded else []
        for run in self.runs:
            changed = {n: v for n, v in run.items() if repr(v) != repr(self.arguments.get(n))}
            parts.append(f"then on {_texts(changed)}" if changed else "then on other data")
        return ", ".join(parts)


def use_of(operator: type[Operator], example: Example) -> Use:
    """Return the use that an example describes."""
    return Use(operator, mapped(example, lambda _, sample: Draw.of(sample)))


def draws(arguments: Example) -> dict[str, Draw]:
    """Return the draws among a use's arguments, by input name."""
    return {name: sample for name, sample in samples(arguments) if isinstance(sample, Draw)}


def mapped(arguments: Example, change: Any) -> dict[str, Any]:
    """Replace each sample of the arguments by `change(input name, sample)`."""
    changed: dict[str, Any] = {}
    for slot, value in arguments.items():
        if isinstance(value, Sample):
            changed[slot] = change(slot, value)
        elif isinstance(value, list):
            changed[slot] = [
                change(f"{slot}.{index}", part) if isinstance(part, Sample) else part
                for index, part in enumerate(value)
            ]
        else:
            changed[slot] = value
    return changed


def replaced(arguments: Example, samples_by_name: Mapping[str, Sample]) -> dict[str, Any]:
    """Replace samples of the arguments, by input name."""
    return mapped(arguments, lambda name, sample: samples_by_name.get(name, sample))


def is_valid(use: Use) -> bool:
    """Return whether inference accepts a use and its tensors are small.

    An exception other than `ModelError` is a defect of the operator's definition, which a case must
    show, so the use counts as valid.
    """
    return output_sizes(use) is not None


def output_sizes(use: Use) -> tuple[int, ...] | None:
    """Return the element count of each output of known shape; `None` if the use is invalid."""
    if not is_small(use.operator, use.arguments):
        return None
    try:
        variation = use.variation("")
        model = model_of(use.operator, variation.arguments, named=use.named)
    except (ModelError, ValueError):
        return None
    except Exception:
        return ()
    shapes = (operand.type.static_shape for operand in model.outputs.values())
    sizes = tuple(prod(shape) for shape in shapes if shape is not None)
    return sizes if all(size <= _MOST_OUTPUTS for size in sizes) else None


def is_small(operator: type[Operator], arguments: Example) -> bool:
    """Return whether all tensors are small, including those whose sizes depend on parameters."""
    computed = {slot.name for slot in operator.slots if slot.parameter}
    computed_size = 1
    for name, draw in draws(arguments).items():
        shape = draw.type.static_shape or ()
        if prod(shape) > MOST_ELEMENTS or len(shape) > _MOST_AXES:
            return False
        if name in computed and draw.value is not None and draw.value.dtype.kind == "i":
            sizes = (max(1, size) for size in draw.value.ravel().tolist())
            computed_size = max(computed_size, prod(sizes))
    if computed_size > MOST_ELEMENTS:
        return False
    values = {name for name, draw in draws(arguments).items() if draw.value is not None}
    if not values or (values != set(draws(arguments)) and computed.isdisjoint(values)):
        return True
    # The sizes of outputs may depend on elements: computed strides, the ends of a RANGE.
    fixed = Use(operator, mapped(arguments, _if_valued_constant))
    try:
        return _makes_little(model_of(operator, fixed.variation("").arguments))
    except Exception:  # which is for inference to find, of the use as it is
        return True


def _if_valued_constant(_: str, draw: Draw) -> Draw:
    return draw if draw.value is None else replace(draw, constant=True)


def _makes_little(model: Model) -> bool:
    return all(prod(o.type.static_shape or ()) <= _MOST_OUTPUTS for o in model.outputs.values())


def _draw_constants(name: str, value: object) -> object:
    if isinstance(value, list):
        return [_draw_constants(f"{name}.{index}", part) for index, part in enumerate(value)]
    if isinstance(value, Draw) and value.constant:
        array = value.array(np.random.default_rng(zlib.crc32(name.encode())))
        return constant(array, name, value.type.quantization)
    return value


def _is_sampled(value: object) -> bool:
    return isinstance(value, Sample | list)


def _texts(arguments: Example) -> str:
    return ", ".join(f"{name}={_text(value)}" for name, value in arguments.items())


def _text(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if not isinstance(value, Draw):
        return str(value.tolist()) if isinstance(value, np.ndarray) else str(value)
    words = [f"{value.type}"]
    if value.value is not None:
        shown = str(value.value.tolist())
        words.append(shown if len(shown) <= 60 else f"{shown[:60]}…")
    elif value.specials:
        words.append(f"with {', '.join(map(str, value.specials))}")
    if value.value is None and (value.low, value.high) != (-2, 2):
        words.append(f"in [{value.low:g}, {value.high:g})")
    if value.ascending:
        words.append("ascending")
    return " ".join(["constant", *words] if value.constant else words)
