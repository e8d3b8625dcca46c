"""Mixtures: uses of an operator that combine many randomly drawn settings.

Each mixture starts from an example. Several rows of settings (see `settings`) are drawn. The row
with the largest number of new pairs and triples of settings is chosen; the example's own values
count as settings. The first mixtures cover each rank and each list of axes. A setting of the row is
applied if inference accepts it and no output becomes empty; otherwise other settings of its factor
are tried. A small number of cases thus covers most combinations of two and three settings, if the
device declines few of them; `pairs` has shorter rows, for devices that decline many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, combinations
from random import Random

from crosschip.conformance.draw import Draw
from crosschip.conformance.settings import (
    Setting,
    all_settings,
    by_factor,
    row_words,
    value_words,
)
from crosschip.conformance.uses import Use, draws, output_sizes, use_of
from crosschip.ops import Operator, examples_of
from crosschip.ops.definition.slots import Parameter

_CHANCES = {
    "computed": 0.1,
    "empty": 0.04,
    "rank": 0.45,
    "sizes": 0.35,
    "saved": 0.25,
    "constants": 0.4,
    "type": 0.7,
    "size": 0.0,
}
_CHANCE = 0.7
"""The probability that a factor is set, if `_CHANCES` does not list it."""

_UNLIKELY = {"rank of ": 0.2, "size of axis ": 0.3}
"""The probabilities that factors are set, by the beginnings of their names."""

_WEIGHTS = {
    **dict.fromkeys(("float16", "int32", "int64", "uint8", "int8", "bool", "quantized-int8"), 6),
    **dict.fromkeys(("float32", "float64", "quantized-uint8", "quantized-int8-ties"), 4),
    **dict.fromkeys(("rank=1", "rank=2", "rank=3", "rank=4", "rank=5"), 6),
    **dict.fromkeys(("bfloat16", "uint64", "uint32", "int16", "uint16"), 3),
    **dict.fromkeys(("rank=0", "quantized-uint8-ties", "quantized-int16-ties"), 2),
}
"""The relative probabilities of settings within their factors; 1 for others."""

_CANDIDATES = 8
"""The number of rows that are drawn for each mixture."""

_MOST_TRIES = 2
"""The maximum number of settings of a factor that are tried until inference accepts one."""

_MOST_REFUSALS = 1
"""The number of refusals after which a setting is no longer tried on an example."""


def mixtures(operator: type[Operator], count: int) -> Iterator[tuple[int, str, Use]]:
    """Generate mixtures: the index of the example, the settings in words, and the use.

    The first mixtures are the same for any count.
    """
    examples = [use_of(operator, example) for example in examples_of(operator)]
    search = _Search(examples, by_factor(all_settings(operator)))
    yielded: set[tuple[int, frozenset[str]]] = set()
    for number in range(count):
        random = Random(f"{operator.type} {number}")
        index, row, use = search.next_mixture(number, random)
        identity = (index, frozenset(setting.words for setting in row))
        if len(row) > 1 and identity not in yielded:
            yielded.add(identity)
            yield index, row_words(row), use


class _Search:
    """Searches for rows with pairs and triples of settings that no row has yet.

    Args:
        examples: the operator's examples.
        factors: the settings of each factor.
    """

    def __init__(self, examples: Sequence[Use], factors: Mapping[str, list[Setting]]) -> None:
        self._examples = examples
        self._factors = factors
        self._chances = {name: _chance_of(name) for name in factors}
        self._weights = {
            name: list(accumulate(_WEIGHTS.get(setting.words, 1) for setting in settings))
            for name, settings in factors.items()
        }
        self._settings_of_examples = [_settings_of_example(use) for use in examples]
        self._once = [
            setting
            for name, settings in factors.items()
            for setting in settings
            if name == "rank" or (setting.slot == name and name.endswith("axes"))
        ]
        self._numbers: dict[str, int] = {}
        self._covered: set[int] = set()
        self._accepted: set[tuple[int, str]] = set()
        self._refusals: Counter[tuple[int, str]] = Counter()

    def next_mixture(self, number: int, random: Random) -> tuple[int, list[Setting], Use]:
        """Return the example's index, the row and the use of the mixture with a number."""
        best: tuple[int, list[Setting]] = (0, [])
        most = -1
        first = self._first_setting(number)
        for candidate in range(_CANDIDATES):
            index = (number + candidate) % len(self._examples) if first is None else first[0]
            row = self._drawn_row(index, random)
            if first is not None:
                row = [first[1], *(each for each in row if not each.excludes(first[1]))]
            gain = sum(group not in self._covered for group in self._groups(index, row))
            if gain > most:
                most, best = gain, (index, row)
        index, row = best
        use, row = self._apply_row(index, row, random)
        self._covered.update(self._groups(index, row))
        return index, row, use

    def _first_setting(self, number: int) -> tuple[int, Setting] | None:
        """Return the setting that a mixture must have, with an example that accepts it."""
        if number >= len(self._once):
            return None
        setting = self._once[number]
        for offset in range(len(self._examples)):
            index = (number + offset) % len(self._examples)
            changed = setting.change(self._examples[index])
            if changed is not None and _is_filled(changed, [setting]):
                return index, setting
        return None

    def _drawn_row(self, index: int, random: Random) -> list[Setting]:
        row: list[Setting] = []
        for name, settings in self._factors.items():
            if random.random() < self._chances[name]:
                (setting,) = random.choices(settings, cum_weights=self._weights[name])
                if self._may_fit(index, setting) and not any(map(setting.excludes, row)):
                    row.append(setting)
        random.shuffle(row)
        return row

    def _may_fit(self, index: int, setting: Setting) -> bool:
        key = (index, setting.words)
        return key in self._accepted or self._refusals[key] < _MOST_REFUSALS

    def _apply_row(
        self, index: int, row: Sequence[Setting], random: Random
    ) -> tuple[Use, list[Setting]]:
        """Apply a row to an example; return the use and the settings that inference accepted."""
        use = self._examples[index]
        applied: list[Setting] = []
        at_once: Use | None = use
        for setting in row:
            at_once = None if at_once is None else setting.change(at_once)
        if at_once is not None and _is_filled(at_once, row):
            self._accepted.update((index, setting.words) for setting in row)
            return at_once, list(row)
        for drawn in row:
            others = self._factors[drawn.factor]
            for setting in (drawn, *random.sample(others, min(_MOST_TRIES - 1, len(others)))):
                if any(map(setting.excludes, applied)) or not self._may_fit(index, setting):
                    continue
                changed = setting.change(use)
                if changed is not None and _is_filled(changed, [*applied, setting]):
                    use = changed
                    applied.append(setting)
                    self._accepted.add((index, setting.words))
                    break
                self._refusals[index, setting.words] += 1
        return use, applied

    def _groups(self, index: int, row: Sequence[Setting]) -> list[int]:
        """Return the pairs and triples of a row's and its example's settings, as numbers."""
        words = {
            **self._settings_of_examples[index],
            **{setting.factor: setting.words for setting in row},
        }
        numbers = sorted(
            self._numbers.setdefault(w, len(self._numbers) + 1) for w in words.values()
        )
        pairs = [a << 12 | b for a, b in combinations(numbers, 2)]
        triples = [a << 24 | b << 12 | c for a, b, c in combinations(numbers, 3)]
        return pairs + triples


def _is_filled(use: Use, row: Sequence[Setting]) -> bool:
    """Return whether a use is valid and no output is empty, unless a setting empties it."""
    sizes = output_sizes(use)
    return sizes is not None and (all(sizes) or any(s.factor == "empty" for s in row))


def _chance_of(factor: str) -> float:
    unlikely = (chance for prefix, chance in _UNLIKELY.items() if factor.startswith(prefix))
    return _CHANCES.get(factor, next(unlikely, _CHANCE))


def _settings_of_example(use: Use) -> dict[str, str]:
    """Return the settings that describe an unchanged example: values, element type and rank."""
    settings: dict[str, str] = {}
    for slot in use.operator.slots:
        if isinstance(slot, Parameter):
            value = use.arguments.get(slot.name, slot.default)
            if not isinstance(value, Draw):
                settings[slot.name] = value_words(slot, value)
        elif slot.optional:
            settings[slot.name] = f"{slot.name}{'' if slot.name in use.arguments else '-left-out'}"
    first = next(iter(draws(use.arguments).values()), None)
    if first is not None:
        settings["type"] = str(first.type.element_type)
        settings["rank"] = f"rank={len(first.type.shape or ())}"
    return settings
