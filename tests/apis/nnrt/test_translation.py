"""Every operator of NNRt computes what the standard operators that stand for it are defined to.

The uses are the examples of the standard operators, each put into NNRt's terms and back; what they
are to compute is what the operators' own definitions say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

import crosschip
from crosschip.apis.nnrt.enumerations import OH_NN_OperationType
from crosschip.apis.nnrt.rows import Entry, expressed, parameter_types, rows
from crosschip.ir import Array, Builder, Model, Operand, Operation, UnsupportedError
from crosschip.mapping.translation import Expressed, import_operation
from crosschip.ops import Operator, examples_of
from crosschip.ops.definition.examples import arrays_for, model_of

# One of these is in the message where an example is beyond an operator of NNRt.
REASONS = re.compile(
    r"has no operand|has no code for|cannot be omitted in the target|must (be|have|run) .*"
)
CASES = {
    f"{code.name.removeprefix('OH_NN_OPS_')}-{entry.row.operator.type}-{index}-{place}": (
        entry,
        arguments,
    )
    for code, entries in rows().items()
    for place, entry in enumerate(entries)
    for index, arguments in enumerate(examples_of(entry.row.operator))
}


def told(entry: Entry, model: Model) -> Expressed | str:
    """An example in NNRt's terms, or the reason why it cannot be."""
    (operation,) = model.operations
    assert isinstance(operation, Operator)
    try:
        return expressed(entry, operation)
    except UnsupportedError as error:
        return str(error)


def rebuilt(entry: Entry, model: Model, found: Expressed) -> Model:
    """The model that an example becomes on its way through NNRt."""
    b = Builder("rebuilt")
    known = {operand: b.input(name, operand.type) for name, operand in model.inputs.items()}

    def now(operands: Sequence[Operand | None]) -> tuple[Operand | None, ...]:
        return tuple(o and known.get(o, o) for o in operands)

    def follow(parts: Sequence[Operation]) -> None:
        for part in parts:
            made = b.insert(part.with_inputs(now(part.inputs)))
            known.update(zip(part.outputs, made, strict=True))

    follow(found.before)
    values = now(found.inputs)
    declared = [operand.type for operand in found.outputs]
    assert entry.row.fits(values, declared)
    made = import_operation(entry.row, b, values, declared, "example")
    known.update(zip(found.outputs, made, strict=True))
    follow(found.after)
    for name, operand in model.outputs.items():
        b.output(name, known[operand])
    return b.build()


def defined(model: Model, arrays: Mapping[str, Array]) -> list[Array]:
    """The outputs of an example's operator, as its definition says."""
    (operation,) = model.operations
    assert isinstance(operation, Operator)
    inputs = {operand: arrays[name] for name, operand in model.inputs.items()}
    values = [None if o is None else inputs.get(o, o.value) for o in operation.inputs]
    return list(operation.kernel()(values))


@pytest.mark.parametrize("case", CASES)
def test_a_use_computes_what_its_operator_is_defined_to(case: str) -> None:
    entry, arguments = CASES[case]
    model, arrays = model_of(entry.row.operator, arguments), arrays_for(arguments)
    found = told(entry, model)
    if isinstance(found, str):
        assert REASONS.search(found)
        return
    with crosschip.compile(rebuilt(entry, model, found), "reference", cache=False) as compiled:
        outputs = list(compiled.run(arrays).values())
    for output, wanted in zip(outputs, defined(model, arrays), strict=True):
        assert (output.dtype, output.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)


def test_a_parameter_has_a_type_that_builders_take() -> None:
    """The types that most of the parameters have, by what their names end with."""
    ends = {"STRIDES": "INT64", "PAD_MODE": "INT8", "KEEP_DIMS": "BOOL", "EPSILON": "FLOAT32"}
    for entries in rows().values():
        for type_ in (type_ for entry in entries for type_ in entry.parameters):
            for end, name in ends.items():
                if type_.name.endswith(f"_{end}") and type_.name != "OH_NN_ALL_KEEP_DIMS":
                    assert parameter_types(type_)[0].name == f"OH_NN_{name}"


@pytest.mark.parametrize("code", OH_NN_OperationType, ids=lambda code: code.name)
def test_every_operator_has_a_use(code: OH_NN_OperationType) -> None:
    """An example of each is told as that operator."""
    assert any(
        not isinstance(told(entry, model_of(entry.row.operator, arguments)), str)
        for entry in rows()[code]
        for arguments in examples_of(entry.row.operator)
    )
