"""Examples of operators generated from their definitions."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from crosschip.ir import ElementType, Error, Quantization
from crosschip.ir.types import FLOATS
from crosschip.opdef.custom.slots import DefinedSlot, Setting, Stored
from crosschip.opdef.definitions import Rank
from crosschip.ops.definition.examples import Example, model_of, random
from crosschip.ops.definition.slots import Slot

if TYPE_CHECKING:
    from crosschip.opdef.custom.operator import CustomOperator

_SHAPES: Mapping[Rank, Sequence[tuple[int, ...]]] = {
    Rank.SCALAR: ((),),
    Rank.ONE: ((4,), (3,), (1,)),
    Rank.TWO: ((3, 4), (4, 4), (1, 4)),
    Rank.THREE: ((2, 3, 4), (2, 4, 4), (1, 2, 4)),
    Rank.FOUR: ((1, 4, 6, 6), (2, 3, 4, 5), (1, 4, 4, 4)),
    Rank.ANY: ((2, 3, 4), (3, 4), (4,), (1, 4, 6, 6)),
}
_NUMBERS = (1, 2, 0, 3, 4, -1)
_TRIES = 400


def find_examples(operator: type[CustomOperator]) -> tuple[Example, ...]:
    """Search for valid arguments of an operator, one example per element type of the first input.

    The result is empty if no small sizes and numbers satisfy the rules. Then examples must be
    written by hand: see `crosschip.ops.definition.examples.examples`.
    """
    inputs = [slot for slot in operator.slots if isinstance(slot, DefinedSlot)]
    examples = []
    for stored in sorted(inputs[0].stored, key=_simplicity):
        for tries, arguments in enumerate(_candidates(operator, inputs, stored)):
            if tries == _TRIES:
                break
            try:
                model_of(operator, arguments)
            except (Error, ValueError):
                continue
            examples.append(arguments)
            break
    return tuple(examples)


def _simplicity(stored: Stored) -> tuple[bool, bool, bool, str]:
    element_type, quantized = stored
    is_float32 = element_type is ElementType.FLOAT32
    return quantized, not is_float32, element_type not in FLOATS, str(element_type)


def _candidates(
    operator: type[CustomOperator],
    inputs: Sequence[DefinedSlot],
    first: Stored,
) -> Iterator[Example]:
    """Yield candidate arguments by slot; most of them may break a rule."""
    declared = {}
    if all(quantized for rule in operator.output_rules for _, quantized in rule.stored):
        declared["quantization"] = Quantization((0.05,))
    needed = [s for s in operator.slots if isinstance(s, Setting) and not s.optional]
    shapes = [_SHAPES[slot.tensor.shape.rank] for slot in inputs]
    matching = list(zip(*([s[i % len(s)] for i in range(4)] for s in shapes), strict=True))
    types = [list(_types(slot, first)) for slot in inputs]
    for kinds in product(*types):
        for sizes in (*matching, *product(*shapes)):
            for numbers in product(_NUMBERS, repeat=len(needed)):
                samples = {
                    slot.name: _sample(slot, size, kind)
                    for slot, size, kind in zip(inputs, sizes, kinds, strict=True)
                }
                settings = {
                    s.name: n if s.rank == 0 else (n, n)
                    for s, n in zip(needed, numbers, strict=True)
                }
                yield {**samples, **settings, **declared}


def _types(slot: DefinedSlot, first: Stored) -> Iterator[Any]:
    if first in slot.stored:
        yield first
    yield from sorted(slot.stored - {first}, key=str)


def _sample(slot: Slot, shape: tuple[int, ...], stored: Stored) -> object:
    element_type, quantized = stored
    seed = zlib.crc32(slot.name.encode()) % 5
    quantization = Quantization((0.05,), (seed if quantized else 0,)) if quantized else None
    low = 0 if str(element_type).startswith("uint") or element_type not in FLOATS else -2
    sample = random(*shape, dtype=element_type, low=low, high=4, quantization=quantization)
    return [sample, sample] if slot.variadic else sample
