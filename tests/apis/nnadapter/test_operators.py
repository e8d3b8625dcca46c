"""Every operator of NNAdapter, called with its operands in order, computes what it is defined to.

The uses are the examples of the standard operators, written out as NNAdapter's calls; what they
are to compute is what the operators' own definitions say.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tests.apis.nnadapter.programs import done, float32, given, run_once

from crosschip.apis.nnadapter import (
    Calls,
    NNAdapterModel_addOperation,
    NNAdapterModel_create,
    NNAdapterModel_destroy,
    NNAdapterModel_finish,
    NNAdapterModel_identifyInputsAndOutputs,
    NNAdapterOperationCode,
    NNAdapterResultCode,
    calls,
    last_error,
)
from crosschip.apis.nnadapter.building import rows
from crosschip.ir import Array, Error, UnsupportedError
from crosschip.mapping.rules import Variadic
from crosschip.ops import Operator, examples_of, operator_named
from crosschip.ops.definition.examples import Example, arrays_for, model_of

OPERATORS = {
    code: operator_named(code.name.removeprefix("NNADAPTER_")) for code in NNAdapterOperationCode
}
CASES = {
    f"{code.name.removeprefix('NNADAPTER_')}-{index}": (code, operator, arguments)
    for code, operator in OPERATORS.items()
    for index, arguments in enumerate(examples_of(operator))
}


def defined(operator: type[Operator], arguments: Example) -> list[Array]:
    """The outputs of an example's operator, as its definition says."""
    model = model_of(operator, arguments)
    (operation,) = model.operations
    assert isinstance(operation, Operator)
    arrays = arrays_for(arguments)
    inputs = {operand: arrays[name] for name, operand in model.inputs.items()}
    values = [None if o is None else inputs.get(o, o.value) for o in operation.inputs]
    return list(operation.kernel()(values))


# One of these is in the message where an example is beyond NNAdapter.
REASONS = re.compile(r"has no operand in the target|has no code for|no integer of|NNAdapter has no")

# The operands of each operator in order, as NNAdapter's header lists them; * stands for several.
DOCUMENTED = dict(
    line.split(maxsplit=1)
    for line in Path(__file__).with_name("operands.txt").read_text("utf-8").splitlines()
)


def test_operands_are_in_the_documented_order() -> None:
    for code, (row, _) in rows().items():
        order = ["*" if isinstance(rule, Variadic) else rule.slot for rule in row.operands]
        assert order == DOCUMENTED[code.name.removeprefix("NNADAPTER_")].split(), code


@pytest.mark.parametrize("case", CASES)
def test_a_use_computes_what_its_operator_is_defined_to(case: str) -> None:
    code, operator, arguments = CASES[case]
    written = told(operator, arguments)
    if isinstance(written, str):
        assert REASONS.search(written)
        return
    replayed = written.replay()
    outputs = run_once(replayed, list(arrays_for(arguments).values()))
    NNAdapterModel_destroy(replayed)
    # What NNAdapter has no operand for, it is told as simpler operators, which round otherwise.
    tolerance = 0 if code in {call.code for call in written.operations} else 1e-5
    for output, wanted in zip(outputs, defined(operator, arguments), strict=True):
        assert output.dtype == wanted.dtype
        assert output.shape == wanted.shape
        np.testing.assert_allclose(output, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("code", OPERATORS, ids=lambda code: code.name)
def test_every_operator_is_called(code: NNAdapterOperationCode) -> None:
    """An example of each is told as that operator, not as simpler ones."""
    operator = OPERATORS[code]
    written = [told(operator, arguments) for arguments in examples_of(operator)]
    found = [call.code for one in written if isinstance(one, Calls) for call in one.operations]
    assert code in found


def told(operator: type[Operator], arguments: Example) -> Calls | str:
    """An example as calls, or the reason why it cannot be."""
    try:
        return calls(model_of(operator, arguments))
    except UnsupportedError as error:
        return str(error)


@pytest.mark.parametrize("code", OPERATORS, ids=lambda code: code.name)
def test_operands_too_many_and_too_few_are_refused(code: NNAdapterOperationCode) -> None:
    """One more than an operator takes, and none of them at all."""
    for read in (100, 0):
        model = given(NNAdapterModel_create())
        x, y = float32(model, 2, 3), float32(model)
        given(NNAdapterModel_addOperation(model, code, [x] * read, [y]))
        done(NNAdapterModel_identifyInputsAndOutputs(model, [x], [y]))
        takes_many = "*" in DOCUMENTED[code.name.removeprefix("NNADAPTER_")]
        if read and takes_many:
            continue
        assert NNAdapterModel_finish(model) is NNAdapterResultCode.NNADAPTER_INVALID_PARAMETER
        assert code.name.removeprefix("NNADAPTER_") in last_error()


@pytest.mark.parametrize(
    ("code", "place", "number"),
    [
        (NNAdapterOperationCode.NNADAPTER_CONV_2D, 3, 3),  # auto_pad
        (NNAdapterOperationCode.NNADAPTER_CONV_2D, 8, 4),  # fuse_code
        (NNAdapterOperationCode.NNADAPTER_CAST, 1, 12),  # dtype
        (NNAdapterOperationCode.NNADAPTER_PAD, 2, 5),  # mode
        (NNAdapterOperationCode.NNADAPTER_GRID_SAMPLE, 3, 3),  # mode
        (NNAdapterOperationCode.NNADAPTER_RESIZE_LINEAR, 4, 2),  # align_mode
    ],
)
def test_numbers_that_only_crosschip_has_are_refused(
    code: NNAdapterOperationCode, place: int, number: int
) -> None:
    operator = OPERATORS[code]
    written = told(operator, examples_of(operator)[0])
    assert isinstance(written, Calls)
    (index,) = (call.inputs[place] for call in written.operations if call.code is code)
    assert index is not None
    type_, value = written.operands[index]
    assert value is not None
    written.operands[index] = (type_, np.full_like(value, number))
    with pytest.raises(Error, match=rf": is {number}, but there are .*INVALID_PARAMETER"):
        written.replay()
