"""The outputs that become inputs of the next run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from crosschip.ir import InputError, Operand
from crosschip.ir.suggestion import did_you_mean
from crosschip.ir.types import PYTHONS_TYPES

ANY = "*"
"""Stands for any text in a name, the same in both of a pair."""

CONVENTIONS = (
    ("present.*", "past_key_values.*"),
    ("present_key_values.*", "past_key_values.*"),
    ("present_key_values_*", "past_key_values_*"),
    ("present_key_*", "past_key_*"),
    ("present_value_*", "past_value_*"),
    ("present_*", "past_*"),
    ("present.*", "past.*"),
)
"""The names that exporters give to what a decoder keeps; the first that an input fits counts."""


def paired(
    outputs: Mapping[str, Operand], inputs: Mapping[str, Operand], state: object
) -> dict[str, str]:
    """The pairs that a caller means, each of an output and the input that it becomes.

    Args:
        outputs: the model's.
        inputs: the model's.
        state: the pairs by name, with one `*` in both for any text; `None` for those that
            `CONVENTIONS` name.

    Raises:
        InputError: there is no such output or input, there are no pairs, two outputs become one
            input, or an input cannot have an output's type.
    """
    if state is None:
        pairs = list(_conventional(outputs, inputs))
        if not pairs:
            raise InputError(
                f"no output is named as exporters name what the next run reads; say which, as in "
                f'state={{"present.*": "past.*"}}; the outputs are {", ".join(outputs)}, the '
                f"inputs {', '.join(inputs)}"
            )
    else:
        pairs = list(_named_pairs(outputs, inputs, state))
    output_by_input: dict[str, str] = {}
    for output, input in pairs:
        other = output_by_input.setdefault(input, output)
        if other != output:
            raise InputError(
                f"outputs {other!r} and {output!r} both become input {input!r}; name one of them"
            )
        _check(output, outputs[output], input, inputs[input])
    return output_by_input


def _conventional(
    outputs: Mapping[str, Operand], inputs: Mapping[str, Operand]
) -> Iterable[tuple[str, str]]:
    for input in inputs:
        for left, right in CONVENTIONS:
            rest = _rest(input, right)
            if rest is not None and (output := left.replace(ANY, rest)) in outputs:
                yield output, input
                break


def _named_pairs(
    outputs: Mapping[str, Operand], inputs: Mapping[str, Operand], state: object
) -> Iterable[tuple[str, str]]:
    if not isinstance(state, Mapping) or not state:
        raise InputError(f'state is {state!r}, but must be like {{"present.*": "past.*"}}')
    for left, right in state.items():
        if not isinstance(left, str) or not isinstance(right, str):
            raise InputError(f"state pairs names of outputs and inputs, not {left!r} and {right!r}")
        if left.count(ANY) > 1 or left.count(ANY) != right.count(ANY):
            raise InputError(f"{left!r} and {right!r} must both have one * or none")
        if ANY not in left:
            yield _known(left, outputs, "output"), _known(right, inputs, "input")
            continue
        matching = [(name, rest) for name in outputs if (rest := _rest(name, left)) is not None]
        if not matching:
            raise InputError(f"no output fits {left!r}; the outputs are {', '.join(outputs)}")
        for name, rest in matching:
            yield name, _known(right.replace(ANY, rest), inputs, "input")


def _known(name: str, there: Mapping[str, Operand], kind: str) -> str:
    if name not in there:
        known = ", ".join(there)
        raise InputError(
            f"the model has no {kind} {name!r}{did_you_mean(name, there)}; its {kind}s are {known}"
        )
    return name


def _rest(name: str, pattern: str) -> str | None:
    """The text that stands for the `*` of a pattern; `None` if the name does not fit it."""
    before, _, after = pattern.partition(ANY)
    if not name.startswith(before) or not name.endswith(after):
        return None
    return name[len(before) : len(name) - len(after)]


def _check(output: str, written: Operand, input: str, read: Operand) -> None:
    if read.type.element_type in PYTHONS_TYPES:
        raise InputError(
            f"input {input!r} is of {read.type.element_type}, which no device keeps; pass it on "
            f"yourself"
        )
    if not written.type.fits(read.type):
        raise InputError(
            f"output {output!r} is {written.type}, which cannot become input {input!r} of "
            f"{read.type}"
        )
