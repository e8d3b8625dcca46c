"""Pairwise coverage: uses in which any two settings of an operator occur together, if they can.

Rows of settings (see `settings`) are extended greedily. A row starts with a pair that no row has
yet, on an example that accepts both, and is extended by the settings that complete the most new
pairs. Pairs that inference rejects on all tried examples are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from random import Random

from crosschip.conformance.settings import Setting, by_factor, paired_settings, row_words
from crosschip.conformance.uses import Use, is_valid, use_of
from crosschip.ops import Operator, examples_of

_EXAMPLES = 2
"""The number of examples a pair is tried on before it counts as impossible."""

_WIDTH = 4
"""The maximum number of settings of a row; a declined setting hides all others of its row."""

_EXTENSIONS = 1
"""The number of settings of each other factor that a row is offered."""


def pairs(operator: type[Operator]) -> Iterator[tuple[int, str, Use]]:
    """Generate rows that cover all pairs: the index of the example, the row's id, and the use."""
    random = Random(operator.type)
    factors = by_factor(paired_settings(operator))
    all_settings = [setting for settings in factors.values() for setting in settings]
    uncovered = dict.fromkeys(
        (a.words, b.words) for a, b in combinations(all_settings, 2) if not a.excludes(b)
    )
    by_words = {setting.words: setting for setting in all_settings}
    while uncovered:
        pair = next(iter(uncovered))
        del uncovered[pair]
        start = _start_row(operator, [by_words[words] for words in pair], random)
        if start is None:
            continue
        index, use = start
        row, use = _extend_row(use, [by_words[words] for words in pair], factors, uncovered, random)
        for a, b in combinations(row, 2):
            uncovered.pop((a.words, b.words), None)
            uncovered.pop((b.words, a.words), None)
        yield index, row_words(row), use


def _start_row(
    operator: type[Operator], settings: list[Setting], random: Random
) -> tuple[int, Use] | None:
    """Return an example that accepts two settings, with both applied; `None` if there is none."""
    indices = random.sample(
        range(len(examples_of(operator))), min(_EXAMPLES, len(examples_of(operator)))
    )
    for index in indices:
        use: Use | None = use_of(operator, examples_of(operator)[index])
        for setting in settings:
            use = None if use is None else setting.change(use)
        if use is not None and is_valid(use):
            return index, use
    return None


def _extend_row(
    use: Use,
    row: list[Setting],
    factors: Mapping[str, list[Setting]],
    uncovered: Mapping[tuple[str, str], None],
    random: Random,
) -> tuple[list[Setting], Use]:
    """Extend a row by settings of other factors that complete pairs."""
    others = [name for name in factors if all(setting.factor != name for setting in row)]
    random.shuffle(others)
    for name in others:
        if len(row) == _WIDTH:
            break
        free = [s for s in factors[name] if not any(s.excludes(other) for other in row)]
        news = [(sum(_is_new_pair(s, other, uncovered) for other in row), s) for s in free]
        best = sorted((entry for entry in news if entry[0]), key=lambda entry: -entry[0])
        for _, setting in best[:_EXTENSIONS]:
            changed = setting.change(use)
            if changed is not None and is_valid(changed):
                use, row = changed, [*row, setting]
                break
    return row, use


def _is_new_pair(a: Setting, b: Setting, uncovered: Mapping[tuple[str, str], None]) -> bool:
    return (a.words, b.words) in uncovered or (b.words, a.words) in uncovered
