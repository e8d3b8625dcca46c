"""The names that somebody may have meant by one that there is not."""

from __future__ import annotations

from collections.abc import Iterable

_LIKENESS = 0.65
"""Of 1, how much two names must have in common to be near."""


def did_you_mean(word: str, known: Iterable[str], most: int = 3) -> str:
    """The question after the nearest names, ` (did you mean 'x'?)`; empty if none is near.

    Args:
        word: the unknown name.
        known: the names to compare with.
        most: the largest number of names in the question.
    """
    # Seldom needed: importing crosschip is to take no longer for it.
    from difflib import get_close_matches

    folded: dict[str, str] = {}
    for name in known:
        folded.setdefault(name.casefold(), name)
    near = get_close_matches(word.casefold(), folded, most, _LIKENESS)
    suggestions = " or ".join(repr(folded[name]) for name in near)
    return f" (did you mean {suggestions}?)" if suggestions else ""
