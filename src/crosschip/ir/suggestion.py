"""Suggestions for misspelled names."""

from __future__ import annotations

from collections.abc import Iterable

_LIKENESS = 0.65
"""Similarity above which a name is suggested, from 0 to 1."""


def did_you_mean(word: str, known: Iterable[str], most: int = 3) -> str:
    """Return ` (did you mean 'x'?)` with the most similar names; empty if none is similar.

    Args:
        word: the unknown name.
        known: the valid names.
        most: the largest number of suggestions.
    """
    # Imported here because it is rarely needed and would slow down importing crosschip.
    from difflib import get_close_matches

    folded: dict[str, str] = {}
    for name in known:
        folded.setdefault(name.casefold(), name)
    near = get_close_matches(word.casefold(), folded, most, _LIKENESS)
    suggestions = " or ".join(repr(folded[name]) for name in near)
    return f" (did you mean {suggestions}?)" if suggestions else ""
