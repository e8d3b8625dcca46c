"""Calls that build a model in every order up to four, each held to what the document says."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from tests.apis.nnrt.programs import Code, described

from crosschip.apis import nnrt
from crosschip.apis.nnrt import OH_NN_OperationType, OH_NNModel

OK, WRONG, FORBIDDEN = (
    Code.OH_NN_SUCCESS,
    Code.OH_NN_INVALID_PARAMETER,
    Code.OH_NN_OPERATION_FORBIDDEN,
)


@dataclass
class Account:
    """The known state of a model."""

    tensors: int = 0
    operations: int = 0
    specified: bool = False
    closed: bool = False


def tensor(known: Account) -> Code:
    if known.closed:
        return FORBIDDEN
    known.tensors += 1
    return OK


def operation(known: Account) -> Code:
    if known.closed:
        return FORBIDDEN
    if known.tensors < 2:
        return WRONG
    known.operations += 1
    return OK


def specified(known: Account) -> Code:
    if known.closed or known.specified:
        return FORBIDDEN
    if known.tensors < 2:
        return WRONG
    known.specified = True
    return OK


def finished(known: Account) -> Code:
    if known.closed or not known.operations or not known.specified:
        return FORBIDDEN
    known.closed = True
    # Two operations make the same tensor.
    return OK if known.operations == 1 else Code.OH_NN_FAILED


def available(known: Account) -> Code:
    return OK if known.closed and known.operations == 1 else FORBIDDEN


SQUARE = OH_NN_OperationType.OH_NN_OPS_SQUARE
STEPS: dict[str, tuple[Callable[[OH_NNModel], Code], Callable[[Account], Code]]] = {
    "tensor": (
        lambda m: nnrt.OH_NNModel_AddTensorToModel(m, described("float32", (2, 3))),
        tensor,
    ),
    "operation": (lambda m: nnrt.OH_NNModel_AddOperation(m, SQUARE, [], [0], [1]), operation),
    "specify": (lambda m: nnrt.OH_NNModel_SpecifyInputsAndOutputs(m, [0], [1]), specified),
    "finish": (nnrt.OH_NNModel_Finish, finished),
    "available": (lambda m: nnrt.OH_NNModel_GetAvailableOperations(m, 0)[0], available),
}
LEADS = ((), ("tensor", "tensor"), ("tensor", "tensor", "operation", "specify"))


@pytest.fixture(autouse=True)
def silence() -> Iterator[None]:
    """The log of thousands of refusals is of no use."""
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("lead", LEADS, ids=lambda lead: "-".join(lead) or "nothing")
@pytest.mark.parametrize("first", STEPS)
def test_every_order_answers_as_documented(first: str, lead: tuple[str, ...]) -> None:
    for rest in itertools.product(STEPS, repeat=3):
        order = (*lead, first, *rest)
        model, known = nnrt.OH_NNModel_Construct(), Account()
        assert model is not None
        for name in order:
            call, expect = STEPS[name]
            assert call(model) is expect(known), f"{name} in {order}"
        nnrt.OH_NNModel_Destroy(model)
        assert nnrt.OH_NNModel_Finish(model) is WRONG
