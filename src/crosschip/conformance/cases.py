"""All cases of the kit, by ids that stay the same from version to version.

A case of an operator is called `OPERATOR/example/variation`, as in `CONV_2D/2/float16`, with
`/loaded` behind it if the program is saved and loaded before it runs. An invalid one is called
`OPERATOR/example/invalid-mutation`, a check of the device as a whole `DEVICE/check`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from crosschip.conformance.checks import CHECKS
from crosschip.conformance.mutations import mutations
from crosschip.conformance.variations import Variation, variations
from crosschip.ir import ModelError
from crosschip.ops import Operator, operators
from crosschip.ops.definition.examples import examples_of, model_of, samples

DEVICE = "DEVICE"
"""What stands in the place of an operator in the ids of checks."""

_LOADED = ("plain", "dynamic", "quantized-int8")
_QUICK = ("plain", "dynamic", "float16", "quantized-int8")


@dataclass(frozen=True, slots=True)
class Case:
    """One thing to try on a device.

    Attributes:
        id: what it is called.
        operator: whose case it is; `DEVICE` for a check of the device as a whole.
        element_type: of the first tensor, for tables; empty for a check.
        variation: the use of the operator, `None` for a check.
        loaded: whether the program runs from its saved form.
        invalid: the slot that validation must name when it refuses the use; empty if it is valid.
    """

    id: str
    operator: str
    element_type: str = ""
    variation: Variation | None = None
    loaded: bool = False
    invalid: str = ""

    def seed(self, seed: int) -> int:
        """What its random numbers start from: the same in every run with the same `seed`."""
        return zlib.crc32(self.id.encode()) ^ seed


def all_cases(
    operator: str | None = None, element_type: str | None = None, *, quick: bool = False
) -> Iterator[Case]:
    """The cases of the kit, or those of an operator or an element type.

    Args:
        operator: only those of this operator, or `DEVICE`.
        element_type: only those whose first tensor has this type.
        quick: only a few of each operator.
    """
    for name, definition in operators().items():
        if operator in (None, name):
            for case in _cases_of(definition, quick):
                if element_type in (None, case.element_type):
                    yield case
    if operator in (None, DEVICE) and element_type is None:
        yield from (Case(f"{DEVICE}/{name}", DEVICE) for name in CHECKS)


def case_of(id: str) -> Case:
    """The case of an id; `KeyError` if there is none."""
    operator = id.partition("/")[0]
    return _by_id(operator)[id]


@lru_cache(maxsize=8)
def _by_id(operator: str) -> dict[str, Case]:
    return {case.id: case for case in all_cases(operator)}


def _cases_of(operator: type[Operator], quick: bool) -> Iterator[Case]:
    for index, arguments in enumerate(examples_of(operator)):
        for variation in variations(operator, arguments):
            if quick and variation.words not in _QUICK[: 4 if index < 2 else 1]:
                continue
            if variation.words != "plain" and not _is_valid(operator, variation):
                continue
            id = f"{operator.type}/{index}/{variation.words}"
            element_type = _element_type(variation)
            yield Case(id, operator.type, element_type, variation)
            if variation.words in _LOADED:
                yield Case(f"{id}/loaded", operator.type, element_type, variation, loaded=True)
        for words, slot, mutated in mutations(operator, arguments):
            if not quick or index == 0:
                id = f"{operator.type}/{index}/invalid-{words}"
                variation = Variation(words, mutated)
                yield Case(id, operator.type, _element_type(variation), variation, invalid=slot)


def _is_valid(operator: type[Operator], variation: Variation) -> bool:
    try:
        model_of(operator, variation.arguments, named=variation.named)
    except ModelError:
        return False
    return True


def _element_type(variation: Variation) -> str:
    for _, sample in samples(variation.arguments):
        quantized = "quantized " if sample.type.quantization else ""
        return f"{quantized}{sample.type.element_type}"
    return ""
