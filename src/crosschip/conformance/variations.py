"""Variations of an operator's examples, each in one respect: type, sizes, parameters or data.

A variation is an example itself and can be varied, run and written in the same way. Inference
decides whether it is a valid use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import ceil, floor
from typing import Any

import numpy as np

from crosschip.conformance.draw import Draw, Scaled
from crosschip.ir import ElementType, Quantization, TensorType
from crosschip.ir.types import BOOLEANS, FLOATS, NARROW_TYPES
from crosschip.ops import Operator
from crosschip.ops.definition.examples import Example, Sample, model_input, samples
from crosschip.ops.definition.quantized import limits
from crosschip.ops.definition.slots import Parameter


@dataclass(frozen=True, slots=True)
class Variation:
    """An example that differs from the operator's own in one respect.

    Attributes:
        words: the respect in which it differs, as a word of the case's id.
        arguments: the example.
        named: whether the sizes of random inputs are dynamic.
        runs: samples of further runs of the same program, by slot.
        drawn: the slots with constants of random elements.
    """

    words: str
    arguments: Example
    named: bool = False
    runs: tuple[Example, ...] = ()
    drawn: frozenset[str] = frozenset()


def variations(operator: type[Operator], arguments: Example) -> Iterator[Variation]:
    """Generate an example as it is, and all variations of it, valid or not."""
    yield Variation("plain", arguments)
    if any(sample.value is None and sample.type.shape for _, sample in samples(arguments)):
        yield Variation("dynamic", arguments, named=True)
        yield Variation("resized", arguments, named=True, runs=(*_resize(arguments), {}))
    yield from _vary_types(operator, arguments)
    yield from _quantize(operator, arguments)
    yield from _vary_sizes(arguments)
    yield from _vary_parameters(operator, arguments)
    yield from _compute_parameters(operator, arguments)
    yield from _vary_data(arguments)
    yield from _make_denormal(arguments)


def _vary_types(operator: type[Operator], arguments: Example) -> Iterator[Variation]:
    """Vary the element type of the tensors that share the first one's type."""
    leading = _leading(operator, arguments)
    if not leading:
        return
    own = next(iter(leading.values())).type.element_type
    first = next(slot for slot in operator.slots if not slot.parameter)
    for element_type in sorted(first.types, key=lambda t: t.code):
        if element_type is not own:
            changed = {name: retyped(s, element_type) for name, s in leading.items()}
            yield Variation(str(element_type), replaced(arguments, changed))
            if element_type in (ElementType.FLOAT16, ElementType.INT32):
                words = f"{element_type}-dynamic"
                yield Variation(words, replaced(arguments, changed), named=True)


QUANTIZATIONS: dict[str, tuple[ElementType, Quantization, Quantization | None]] = {
    "quantized-int8": (ElementType.INT8, Quantization((0.03,)), Quantization((0.05,))),
    "quantized-uint8": (
        ElementType.UINT8,
        Quantization((0.03,), (117,)),
        Quantization((0.05,), (99,)),
    ),
    "quantized-int16": (ElementType.INT16, Quantization((1e-3,)), Quantization((2e-3,))),
    "quantized-int8-ties": (ElementType.INT8, Quantization((0.5,)), Quantization((1.0,))),
    "quantized-uint8-ties": (
        ElementType.UINT8,
        Quantization((0.5,), (128,)),
        Quantization((1.0,), (100,)),
    ),
    "quantized-int16-ties": (ElementType.INT16, Quantization((0.5,)), Quantization((1.0,))),
    "quantized-to-real": (ElementType.INT8, Quantization((0.03,)), None),
}
"""Quantizations: the element type, and the parameters of inputs and of the output.

With scales that are powers of 2, sums and products are exact, and many of them lie in the middle
between two integers (`ties`).
"""


def _quantize(operator: type[Operator], arguments: Example) -> Iterator[Variation]:
    """Quantize the tensors that share the first one's type."""
    leading = _leading(operator, arguments)
    plain = all(sample.type.quantization is None for _, sample in samples(arguments))
    if not plain or not leading or not _is_real(leading):
        return
    for words in QUANTIZATIONS:
        varied = leading_quantized(operator, arguments, words)
        if varied is not None:
            yield Variation(words, varied)


def leading_quantized(operator: type[Operator], arguments: Example, words: str) -> Example | None:
    """Quantize the tensors that share the first one's type; `None` if their elements are fixed."""
    element_type, scales, output = QUANTIZATIONS[words]
    leading = _leading(operator, arguments)
    changed = {name: as_integers(s, element_type, scales) for name, s in leading.items()}
    if not changed or not all(changed.values()):
        return None
    varied = dict(replaced(arguments, {n: s for n, s in changed.items() if s is not None}))
    return {**varied, "quantization": output} if output else varied


def _vary_sizes(arguments: Example) -> Iterator[Variation]:
    """Vary the size of each axis of each random input: 0, 1, 7, and the size plus 1."""
    for name, sample in samples(arguments):
        shape = sample.type.static_shape or ()
        if sample.value is not None:
            continue
        for axis, own in enumerate(shape):
            for size in sorted({0, 1, 7, own + 1} - {own}):
                sizes = (*shape[:axis], size, *shape[axis + 1 :])
                resized = replace(sample, type=replace(sample.type, shape=sizes))
                yield Variation(f"{name}.{axis}={size}", replaced(arguments, {name: resized}))


def _resize(arguments: Example) -> Iterator[Example]:
    """Vary the size of each axis of each random input, whether or not it matches the others."""
    for name, sample in samples(arguments):
        shape = sample.type.static_shape or ()
        if sample.value is not None:
            continue
        for axis, own in enumerate(shape):
            for size in sorted({0, 1, own + 1} - {own}):
                sizes = (*shape[:axis], size, *shape[axis + 1 :])
                other = replace(sample, type=replace(sample.type, shape=sizes))
                slot = name.partition(".")[0]
                yield {slot: replaced(arguments, {name: other})[slot]}


def _vary_parameters(operator: type[Operator], arguments: Example) -> Iterator[Variation]:
    """Vary each parameter over the interesting values of its kind."""
    for slot in operator.slots:
        if isinstance(slot, Parameter):
            now = arguments.get(slot.name, slot.default)
            for value in interesting(slot, arguments):
                if value != now:
                    yield Variation(f"{slot.name}={word(value)}", {**arguments, slot.name: value})
            if slot.optional and slot.name in arguments:
                rest = {name: value for name, value in arguments.items() if name != slot.name}
                yield Variation(f"{slot.name}-left-out", rest)


def _compute_parameters(operator: type[Operator], arguments: Example) -> Iterator[Variation]:
    """Compute each parameter of the example when the model runs."""
    for slot in operator.slots:
        if isinstance(slot, Parameter) and slot.name != "fuse_code" and slot.name in arguments:
            value = arguments[slot.name]
            if value is not None and not isinstance(value, Sample):
                computed = model_input(slot.encode(value))
                yield Variation(f"{slot.name}-computed", {**arguments, slot.name: computed})


def _vary_data(arguments: Example) -> Iterator[Variation]:
    """Vary data: NaN among random reals, integers that are 0 or out of range, a false condition.

    Runs that the definition rejects must be rejected whatever the other elements are.
    """
    for name, sample in samples(arguments):
        if sample.value is None:
            if sample.type.element_type in FLOATS:
                salted = replace(Draw.of(sample), specials=(np.nan,))
                yield Variation(f"{name}-nan", replaced(arguments, {name: salted}))
        elif sample.value.size and sample.type.quantization is None:
            for words, number in _OTHERS.get(sample.type.element_type, ()):
                value = sample.value.copy()
                value.reshape(-1)[-1] = number
                if not np.array_equal(value, sample.value):
                    changed = replace(sample, value=value)
                    yield Variation(f"{name}-{words}", replaced(arguments, {name: changed}))


def _make_denormal(arguments: Example) -> Iterator[Variation]:
    """Make random float32 elements denormal; of two tensors, also the second one large.

    Their products are normal then. With more tensors, sums of large elements could be infinite.
    """
    floats = {
        name: sample
        for name, sample in samples(arguments)
        if sample.value is None and sample.type.element_type is ElementType.FLOAT32
    }
    scaled = {name: _scale(sample, _DENORMAL) for name, sample in floats.items()}
    if scaled:
        yield Variation("denormal", replaced(arguments, scaled))
    if len(scaled) == 2:
        second = list(floats)[1]
        scaled[second] = _scale(floats[second], _LARGE)
        yield Variation("denormal-and-large", replaced(arguments, scaled))


_DENORMAL = -131
"""The exponent of a power of 2 whose product with numbers below 16 is denormal in float32."""

_LARGE = 124
"""The exponent of a power of 2 whose product with numbers below 8 is large, but finite."""


def _scale(sample: Sample, exponent: int) -> Scaled:
    return replace(Scaled.of(sample), exponent=exponent)


_OTHERS: dict[ElementType, Sequence[tuple[str, int]]] = {
    ElementType.INT32: (("far", 1000), ("zero", 0)),
    ElementType.INT64: (("far", 1000), ("zero", 0)),
    ElementType.BOOL: (("not", False),),
}


def interesting(slot: Parameter[Any], arguments: Example) -> Iterator[object]:
    """Return values of a parameter to test, for its kind and the ranks of an example."""
    if slot.options:
        yield from slot.options
    elif slot.kind == "flag":
        yield from (False, True)
    elif slot.kind == "integer":
        rank = max((len(s.type.shape or ()) for _, s in samples(arguments)), default=0)
        yield from range(-rank, rank + 1) if slot.name.endswith("axis") else (0, 1, 2, 3)
    elif slot.kind == "real number":
        yield from (0.0, 0.5, 1.0, -1.0)
    elif slot.kind == "list of integers":
        length = len(_sequence(arguments.get(slot.name, slot.default)))
        yield from ((fill,) * length for fill in (0, 1, 2) if length)


def _leading(operator: type[Operator], arguments: Example) -> dict[str, Sample]:
    """Return the samples of the first tensor slot and of those that share its type."""
    tensors = [slot for slot in operator.slots if not slot.parameter]
    if not tensors:
        return {}
    names = {tensors[0].name}
    for slot in tensors:
        if slot.like in names:
            names.add(slot.name)
    return {n: s for n, s in samples(arguments) if n.partition(".")[0] in names}


def _is_real(leading: Mapping[str, Sample]) -> bool:
    return all(s.type.element_type is ElementType.FLOAT32 for s in leading.values())


def retyped(sample: Sample, element_type: ElementType) -> Sample:
    """Return the sample with another element type, away from the limits of integers.

    Reals in place of integers fit all integer types, because casts beyond a type's range are
    unspecified. NaN and infinities become 0 in integers.
    """
    type_ = TensorType(element_type, sample.type.shape)
    if sample.value is not None:
        value = sample.value
        if element_type not in FLOATS and value.dtype.kind == "f":
            value = np.where(np.isfinite(value), value, 0)
        if {element_type, sample.type.element_type} & NARROW_TYPES:
            value = value.astype(np.float64)  # not all of them are cast to each other
        with np.errstate(all="ignore"):
            return replace(sample, type=type_, value=value.astype(element_type.dtype))
    if element_type in FLOATS and "int" in sample.type.element_type.value:
        return replace(sample, type=type_, low=max(sample.low, 0), high=min(sample.high, 127))
    if element_type in FLOATS | BOOLEANS:
        return replace(sample, type=type_)
    if "int" not in element_type.value:
        return replace(sample, type=type_, low=max(sample.low, 0), high=max(sample.high, 1))
    least, greatest = limits(element_type)
    low = max(least, min(floor(sample.low * 3), 0))
    return replace(sample, type=type_, low=low, high=min(greatest + 1, ceil(sample.high * 3) + 1))


def as_integers(sample: Sample, element_type: ElementType, scales: Quantization) -> Sample | None:
    """Quantize a sample over its range; `None` if its elements are fixed."""
    if sample.value is not None:
        return None
    least, greatest = limits(element_type)
    scale, zero = scales.scale[0], scales.zero_point[0]
    low = max(least, ceil(sample.low / scale) + zero)
    high = min(greatest + 1, floor(sample.high / scale) + zero + 1)
    if high <= low:
        return None
    type_ = TensorType(element_type, sample.type.shape, scales)
    return Sample(type_, low, high, ascending=sample.ascending)


def replaced(arguments: Example, changed: Mapping[str, Sample]) -> Example:
    """Replace samples of the example, by input name."""
    varied = dict(arguments)
    for name, sample in changed.items():
        slot, _, index = name.partition(".")
        if index:
            parts = list(_sequence(varied[slot]))
            parts[int(index)] = sample
            varied[slot] = parts
        else:
            varied[slot] = sample
    return varied


def _sequence(value: object) -> list[object]:
    if isinstance(value, Sample):
        return [] if value.value is None else list(value.value.ravel())
    return list(np.ravel(value)) if isinstance(value, np.ndarray) else list(value or ())  # type: ignore[call-overload]


def word(value: object) -> str:
    """Format a value for the id of a case."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, tuple | list):
        return "x".join(map(str, value))
    return str(value).lower()
