"""Rewrites of single operations: the operations, their names and their results."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from tests.modelling import float32, model_of

from crosschip.devices.reference import ReferenceProgram
from crosschip.ir import Builder, Model, Operand, Operation
from crosschip.ops import Add, Mul, Relu
from crosschip.passes import run
from crosschip.passes.rewrite_operations import RewriteOperations, rebuild, sources


def doubled_by_sum(b: Builder, op: Mul) -> Sequence[Operand] | None:
    """Rewrite `x * 2` to `x + x`."""
    factor = op.input1.value
    return (b.add(Add, op.input0, op.input0),) if factor is not None and factor == 2 else None


def halved(b: Builder, op: Mul) -> Sequence[Operand] | None:
    """Rewrite `x * factor` to the sum of two `x * (factor / 2)`."""
    factor = np.asarray(op.input1.value)
    if factor <= 1:
        return None
    part = rebuild(b, op, input1=(factor / 2).astype(np.float32))
    return (b.add(Add, part, part),)


def product(factor: float) -> Model:
    def make(b: Builder, x: Operand) -> Operand:
        return b.add(Mul, x, np.array(factor, np.float32), name="scale")

    return model_of(make, float32(2, 3))


def test_a_model_in_which_nothing_is_rewritten_stays_the_same_object() -> None:
    model = product(3)
    assert RewriteOperations(doubled_by_sum, (Mul,))(model) is model
    assert RewriteOperations(doubled_by_sum, (Add,))(product(2)).operations[0].type == "MUL"


def test_what_a_rewrite_builds_stands_for_the_operation() -> None:
    model = product(2)
    after = RewriteOperations(doubled_by_sum, (Mul,))(model)
    (operation,) = after.operations
    assert isinstance(operation, Add)
    assert operation.outputs == model.operations[0].outputs
    assert operation.name == "scale"
    assert sources(model, after) == {operation: model.operations[0]}


def test_an_operation_of_the_same_operator_keeps_its_name() -> None:
    """A pass also rewrites what an earlier pass has built."""
    model = product(4)
    after = run(model, (RewriteOperations(halved, (Mul,)), RewriteOperations(halved, (Mul,))))
    assert [operation.type for operation in after.operations] == ["MUL", "ADD", "ADD"]
    assert after.operations[0].name == "scale"
    assert len({operation.name for operation in after.operations}) == 3
    assert set(sources(model, after).values()) == {model.operations[0]}
    x = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(ReferenceProgram(after).run([x])[0], 4 * x)


def test_only_the_operations_that_are_found_are_rewritten() -> None:
    def before_relu(model: Model) -> Collection[Operation]:
        relus = [operation for operation in model.operations if isinstance(operation, Relu)]
        return {model.producers[operation.input] for operation in relus}

    def make(b: Builder, x: Operand) -> Operand:
        two = np.array(2, np.float32)
        return b.add(Mul, b.add(Relu, b.add(Mul, x, two, name="first")), two, name="last")

    after = RewriteOperations(doubled_by_sum, (Mul,), before_relu)(model_of(make, float32(2, 3)))
    assert [(o.type, o.name) for o in after.operations] == [
        ("ADD", "first"),
        ("RELU", "relu_0"),
        ("MUL", "last"),
    ]


def test_a_rewrite_may_return_an_operand_that_was_there() -> None:
    def without_relu(b: Builder, op: Relu) -> Sequence[Operand]:
        return (op.input,)

    model = model_of(lambda b, x: b.add(Relu, x), float32(3))
    after = RewriteOperations(without_relu, (Relu,))(model)
    after.verify()
    assert [operation.type for operation in after.operations] == ["ASSIGN"]
