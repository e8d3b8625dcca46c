"""The limits of what one model may cost to load and compile, and the account of what it has cost.

A file of a few hundred bytes can describe loops in loops, functions that call each other, or
constants that double with each operation. What makes more of a model than its file holds is spent
from one budget, and so is the time that this takes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod

from crosschip.ir.bodies import every_constant, every_operation
from crosschip.ir.dataclass import dataclass
from crosschip.ir.errors import BudgetError, InputError
from crosschip.ir.model import Model


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of what loading and compiling one model may cost.

    The defaults are many times what any of some thousand real models takes, and what a machine
    with a few gigabytes of memory and a person in front of it can bear.

    Args:
        bytes: how many bytes of constants may be made from those that the model's files hold;
            twice what these hold may be made besides.
        tensor_bytes: how many bytes a tensor of a known shape may have.
        operations: how many operations functions and loops may become.
        programs: how many programs devices may compile, one for each segment of the model and of
            the bodies of control flow that the runtime runs.
        seconds: how long importing may take, and then simplifying, and then asking the devices;
            what a device takes to compile does not count.

    Raises:
        InputError: one of them is not a number above zero.
    """

    bytes: int = 2**29
    tensor_bytes: int = 2**32
    operations: int = 100_000
    programs: int = 4096
    seconds: float = 300

    def __post_init__(self) -> None:
        for name in self.__slots__:
            limit = getattr(self, name)
            if isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0:
                raise InputError(f"budget: {name} is {limit!r}, but must be a number above 0")


class _Account:
    """Account of what has been spent of a budget."""

    __slots__ = ("budget", "bytes", "ends", "granted", "operations")

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.bytes = self.granted = self.operations = 0
        # An integer may be too large to be added to a float.
        self.ends = time.monotonic() + min(budget.seconds, sys.float_info.max)


_account: ContextVar[_Account | None] = ContextVar("crosschip_budget", default=None)


@contextmanager
def spending(budget: Budget | None = None) -> Iterator[None]:
    """Let what is spent inside come from one budget.

    Args:
        budget: `None` for the default.

    Raises:
        InputError: it is something else than a budget.
    """
    if budget is not None and not isinstance(budget, Budget):
        raise InputError(f"budget is {budget!r}, but must be a crosschip.Budget, or None")
    token = _account.set(_Account(budget or Budget()))
    try:
        yield
    finally:
        _account.reset(token)


def spend(*, operations: int = 0, bytes: int = 0) -> None:
    """Spend from the budget, if there is one; the time is looked at, too.

    Args:
        operations: how many are about to be made.
        bytes: how many bytes of constants are about to be made.

    Raises:
        BudgetError: that is more than there is.
    """
    account = _account.get()
    if account is None:
        return
    budget = account.budget
    account.operations += operations
    account.bytes += bytes
    if account.operations > budget.operations:
        raise _too_many_operations(budget.operations)
    if account.bytes > budget.bytes + account.granted:
        raise BudgetError(
            f"its constants grow by over {budget.bytes + account.granted} bytes before it runs"
            f"{_advice('bytes', budget.bytes)}"
        )
    if time.monotonic() > account.ends:
        raise BudgetError(
            f"has taken over {budget.seconds:g} seconds{_advice('seconds', budget.seconds)}"
        )


def require(*, operations: int = 0, programs: int = 0) -> None:
    """Check that the budget, if there is one, suffices for what is to come; nothing is spent.

    Args:
        operations: how many functions become.
        programs: how many devices are to compile.

    Raises:
        BudgetError: that is more than there is.
    """
    account = _account.get()
    if account is None:
        return
    budget = account.budget
    if account.operations + operations > budget.operations:
        raise _too_many_operations(budget.operations)
    if programs > budget.programs:
        raise BudgetError(
            f"falls into {programs} segments, each with a program of its own"
            f"{_advice('programs', budget.programs)}"
        )


def check_sizes(model: Model) -> None:
    """Refuse a model with a tensor that is too large, and grant bytes for the constants it has.

    Raises:
        BudgetError: an operand of a known shape has more bytes than the budget allows.
    """
    account = _account.get()
    if account is None:
        return
    limit = account.budget.tensor_bytes
    account.granted = 2 * sum(
        o.content.nbytes for o in every_constant(model) if o.content is not None
    )
    results = (operand for operation in every_operation(model) for operand in operation.outputs)
    for operand in (*model.inputs.values(), *results):
        shape = operand.type.static_shape
        size = 0 if shape is None else prod(shape) * operand.type.element_type.dtype.itemsize
        if size > limit:
            raise BudgetError(
                f"{operand.name!r} is {operand.type}, which takes {size} bytes"
                f"{_advice('tensor_bytes', limit)}"
            )


def _too_many_operations(limit: float) -> BudgetError:
    return BudgetError(
        f"its functions and loops become over {limit} operations{_advice('operations', limit)}"
    )


def _advice(name: str, limit: float) -> str:
    return (
        f"; the budget allows {name}={limit}: if the model is one that you trust, "
        f"pass a larger one, as in budget=crosschip.Budget({name}=…)"
    )
