"""Pairs of an output and the input of the next run that it becomes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from crosschip.ir import InputError, Operand
from crosschip.ir.state_names import ANY, conventional_pairs, wildcard_text
from crosschip.ir.suggestion import did_you_mean
from crosschip.ir.types import PYTHONS_TYPES


def pair_state(
    outputs: Mapping[str, Operand], inputs: Mapping[str, Operand], state: object
) -> dict[str, str]:
    """Return the output for each input that is state, by name.

    Args:
        outputs: the outputs of the model.
        inputs: the inputs of the model.
        state: the pairs by name, with one `*` in both for any text; `None` for the names that
            exporters use.

    Raises:
        InputError: there is no such output or input, there are no pairs, two outputs become one
            input, or an output's type does not fit its input.
    """
    if state is None:
        pairs = list(conventional_pairs(outputs, inputs))
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
            yield _check_name(left, outputs, "output"), _check_name(right, inputs, "input")
            continue
        matching = [
            (name, rest) for name in outputs if (rest := wildcard_text(name, left)) is not None
        ]
        if not matching:
            raise InputError(f"no output fits {left!r}; the outputs are {', '.join(outputs)}")
        for name, rest in matching:
            yield name, _check_name(right.replace(ANY, rest), inputs, "input")


def _check_name(name: str, operands: Mapping[str, Operand], kind: str) -> str:
    if name not in operands:
        near, names = did_you_mean(name, operands), ", ".join(operands)
        raise InputError(f"the model has no {kind} {name!r}{near}; its {kind}s are {names}")
    return name


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
