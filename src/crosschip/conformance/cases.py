"""All cases of the kit, with ids that stay the same from version to version.

The ids are `OPERATOR/example/variation`, as in `CONV_2D/2/float16`, with the suffix `/loaded` if
the program is saved and loaded before it runs; `OPERATOR/example/invalid-mutation` for invalid
uses; `DEVICE/check` for checks of the whole device; and `OPERATOR/random/seed-number` for random
cases. The id of a shrunk random case has the suffix `~` and the path to the smaller use (see
`shrinking`).
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import crosschip.conformance.run_checks  # noqa: F401 - registers its checks
from crosschip.conformance.checks import CHECKS
from crosschip.conformance.extremes import extreme_run, one_signed_run
from crosschip.conformance.mixtures import mixtures
from crosschip.conformance.mutations import mutations
from crosschip.conformance.pairs import pairs
from crosschip.conformance.sampling import other_run, random_use
from crosschip.conformance.settings import use_of_row
from crosschip.conformance.shrinking import follow_path
from crosschip.conformance.uses import Use, use_of
from crosschip.conformance.variations import QUANTIZATIONS, Variation, variations
from crosschip.ir import ElementType, ModelError
from crosschip.ops import Operator, operator_named
from crosschip.ops.definition.examples import examples_of, model_of, samples
from crosschip.ops.packages import all_operators

DEVICE = "DEVICE"
"""The first word of the ids of checks, instead of an operator."""

RANDOM = "random"
"""The second word of the ids of random cases, instead of an example's index."""

_LOADED = ("plain", "dynamic", "quantized-int8")
_RUN_TWICE = ("plain", "dynamic")
_QUICK: Sequence[Container[str]] = (
    ("plain", "dynamic", "float16", "quantized-int8"),
    ("plain", "dynamic", "float16"),
)
"""The variations of each of the first examples in the quick kit; later examples have `plain`."""
_QUICK_ONCE = frozenset({*map(str, ElementType), *QUANTIZATIONS, "denormal", "denormal-and-large"})
"""Variations that the quick kit contains once, for the first example on which they are valid."""
_ONE_SIGNED = frozenset({"plain", *map(str, ElementType)})
"""Variations that are also run on elements of one sign."""
_WIDE = ("int64", "uint64")
_WIDE_RUNS = 3
"""The number of runs on integers of all magnitudes for 64-bit types."""
_WITH_OTHER_DATA = 3
"""The number of examples with variations `…-far`, `…-zero` and `…-not` in the quick kit."""
_WITHOUT_EXTREMES = ("resized", "input-nan", "denormal", "denormal-and-large")
_MIXTURES = (14, 5)
"""The number of mixtures per operator, and per slot of the operator, in the quick kit."""
_TIMES_AS_MANY = 4
"""The number of mixtures in the whole kit, as a multiple of those in the quick kit."""


@dataclass(frozen=True, slots=True)
class Case:
    """One test of a device.

    Attributes:
        id: the stable identifier.
        operator: the type of the tested operator; `DEVICE` for a check of the device as a whole.
        element_type: the element type of the first tensor, for tables; empty for a check.
        variation: the use of the operator, `None` for a check.
        loaded: whether the program is saved and loaded before it runs.
        invalid: the slot that validation must name in its error; empty for a valid use.
    """

    id: str
    operator: str
    element_type: str = ""
    variation: Variation | None = None
    loaded: bool = False
    invalid: str = ""

    def seed(self, seed: int) -> int:
        """Return the seed of the case's random elements, the same in every run with this `seed`."""
        return zlib.crc32(self.id.partition("~")[0].encode()) ^ seed


def all_cases(
    operators: str | Collection[str] = (), element_type: str | None = None, *, quick: bool = False
) -> Iterator[Case]:
    """Generate the cases of the kit, or those of some operators or of an element type.

    Args:
        operators: the types of the operators, or `DEVICE`; empty for all.
        element_type: the element type of the first tensor; `int8` includes quantized int8,
            `quantized int8` excludes plain int8.
        quick: whether to generate a small selection for each operator.
    """
    chosen = names_of(operators)
    for name, definition in all_operators().items():
        if not chosen or name in chosen:
            for case in _cases_of(definition, quick):
                if has_type(case, element_type):
                    yield case
    if (not chosen or DEVICE in chosen) and element_type is None:
        yield from (Case(f"{DEVICE}/{name}", DEVICE) for name in CHECKS)


def names_of(operators: str | Collection[str]) -> set[str]:
    """Return the set of one operator type or of several."""
    return {operators} if isinstance(operators, str) else set(operators)


def has_type(case: Case, element_type: str | None) -> bool:
    """Return whether a case's first tensor has an element type, plain or quantized.

    `None` is any type.
    """
    type_ = case.element_type
    return element_type in (None, type_, type_.removeprefix("quantized "))


def case_of(id: str) -> Case:
    """Return the case with an id, or raise `KeyError`."""
    operator = id.partition("/")[0]
    if f"{operator}/{RANDOM}/" in id:
        return _random_case(id)
    variation = _variations_by_id(operator).get(id)
    return variation or _case_of_row(id)


def random_cases(
    count: int, seed: int = 0, operators: str | Collection[str] = (), *, rounds: int = 1
) -> Iterator[Case]:
    """Generate random cases, more of them for operators with more slots; `case_of` builds each one.

    Args:
        count: the number of cases in a round.
        seed: the seed from which they are drawn.
        operators: the types of the operators; empty for all.
        rounds: the number of rounds, each with other cases.
    """
    known, wanted = all_operators(), names_of(operators)
    chosen = [name for name in known if not wanted or name in wanted]
    weights = [2 + len(known[name].slots) for name in chosen]
    for number in range(rounds):
        for name, weight in zip(chosen, weights, strict=True):
            share = -(-count * weight // sum(weights))
            for index in range(share * number, share * (number + 1)):
                yield Case(f"{name}/{RANDOM}/{seed}-{index}", name)


def use_in_words(case: Case) -> str:
    """Describe the use of an operator that a case tests, and how its program is run."""
    if case.variation is None:
        return ""
    use = use_of(operator_named(case.operator), case.variation.arguments)
    runs = tuple(use_of(use.operator, run).arguments for run in case.variation.runs)
    return str(replace(use, named=case.variation.named, loaded=case.loaded, runs=runs))


def use_at(id: str) -> Use:
    """Return the use of the random case with an id, or raise `KeyError`."""
    operator, _, rest = id.partition(f"/{RANDOM}/")
    drawn, _, way = rest.partition("~")
    try:
        steps = [int(step) for step in way.split(".")] if way else []
    except ValueError:
        raise KeyError(id) from None
    return follow_path(random_use(operator_named(operator), f"{operator}/{drawn}"), steps)


def _random_case(id: str) -> Case:
    use = use_at(id)
    variation = use.variation(RANDOM)
    return Case(id, use.operator.type, _element_type(variation), variation, loaded=use.loaded)


@lru_cache(maxsize=8)
def _variations_by_id(operator: str) -> dict[str, Case]:
    """Return the cases of an operator except rows of settings, or all checks, by id."""
    if operator == DEVICE:
        return {case.id: case for case in all_cases(DEVICE)}
    return {case.id: case for case in _vary_examples(all_operators()[operator], quick=False)}


def _cases_of(operator: type[Operator], quick: bool) -> Iterator[Case]:
    yield from _vary_examples(operator, quick=quick)
    base, per_slot = _MIXTURES
    count = (base + per_slot * len(operator.slots)) * (1 if quick else _TIMES_AS_MANY)
    yielded: set[str] = set()
    for index, row_id, use in mixtures(operator, count):
        case = _row_case(operator, index, row_id, use)
        yielded.add(case.id)
        yield case
    for index, row_id, use in () if quick else pairs(operator):
        case = _row_case(operator, index, row_id, use)
        if case.id not in yielded:
            yield case


def _vary_examples(operator: type[Operator], *, quick: bool) -> Iterator[Case]:
    """Generate the variations of an operator's examples, and the invalid uses."""
    once = set(_QUICK_ONCE)
    for index, arguments in enumerate(examples_of(operator)):
        for variation in variations(operator, arguments):
            if quick and variation.words not in once and not _is_quick(index, variation.words):
                continue
            if variation.words != "plain" and not _is_valid(operator, variation):
                continue
            once.discard(variation.words)
            variation = _with_runs(operator, variation, index)
            id = f"{operator.type}/{index}/{variation.words}"
            element_type = _element_type(variation)
            yield Case(id, operator.type, element_type, variation)
            if variation.words in _LOADED and not (quick and (index or variation.named)):
                yield Case(f"{id}/loaded", operator.type, element_type, variation, loaded=True)
        for words, slot, mutated in mutations(operator, arguments):
            if not quick or index == 0:
                id = f"{operator.type}/{index}/invalid-{words}"
                variation = Variation(words, mutated)
                yield Case(id, operator.type, _element_type(variation), variation, invalid=slot)


def _with_runs(operator: type[Operator], variation: Variation, index: int) -> Variation:
    """Add runs on other data and sizes, and on extreme and one-signed elements, to a variation."""
    if variation.words in _RUN_TWICE:
        later = other_run(operator, variation.arguments, named=variation.named)
        variation = replace(variation, runs=(later,))
    if variation.words not in _WITHOUT_EXTREMES:
        extremes = extreme_run(variation.arguments, index)
        count = _WIDE_RUNS if variation.words in _WIDE else 1
        variation = replace(variation, runs=(*variation.runs, *(extremes,) * count))
    if index == 0 and variation.words in _ONE_SIGNED:
        signed = one_signed_run(variation.arguments)
        variation = replace(variation, runs=(*variation.runs, signed))
    return variation


def _is_quick(index: int, words: str) -> bool:
    """Return whether a variation of an example belongs to the quick kit."""
    if words.endswith(("-far", "-zero", "-not")):
        return index < _WITH_OTHER_DATA
    return words in (_QUICK[index] if index < len(_QUICK) else ("plain",))


def _row_case(operator: type[Operator], index: int, row_id: str, use: Use) -> Case:
    """Return the case of a row of settings, with runs on other data and on extreme elements."""
    later = other_run(operator, use.arguments, named=use.named)
    extremes = extreme_run(use.arguments, zlib.crc32(row_id.encode()))
    variation = replace(use, runs=(later, extremes)).variation(row_id)
    id = f"{operator.type}/{index}/{row_id}"
    return Case(id, operator.type, _element_type(variation), variation, loaded=use.loaded)


def _case_of_row(id: str) -> Case:
    """Return the case with the id of a row of settings, or raise `KeyError`."""
    name, _, rest = id.partition("/")
    index, _, row_id = rest.partition("/")
    if not index.isdecimal():
        raise KeyError(id)
    operator = all_operators()[name]
    return _row_case(operator, int(index), row_id, use_of_row(operator, int(index), row_id))


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
