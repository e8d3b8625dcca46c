"""Names by which exporters mark the state of a model: outputs that the next run reads."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

ANY = "*"
"""The wildcard in names, which matches the same text in both names of a pair."""

CONVENTIONS = (
    ("present.*", "past_key_values.*"),
    ("present_key_values.*", "past_key_values.*"),
    ("present_key_values_*", "past_key_values_*"),
    ("present_key_*", "past_key_*"),
    ("present_value_*", "past_value_*"),
    ("present_*", "past_*"),
    ("present.*", "past.*"),
)
"""The names of a decoder's state by exporters; the first pair that an input matches applies."""


def conventional_pairs(outputs: Container[str], inputs: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the names of each output and the input of the next run that it becomes."""
    for input in inputs:
        for left, right in CONVENTIONS:
            rest = wildcard_text(input, right)
            if rest is not None and (output := left.replace(ANY, rest)) in outputs:
                yield output, input
                break


def wildcard_text(name: str, pattern: str) -> str | None:
    """Return the text that the `*` of a pattern matches; `None` if the name does not match."""
    before, _, after = pattern.partition(ANY)
    if not name.startswith(before) or not name.endswith(after):
        return None
    return name[len(before) : len(name) - len(after)]
