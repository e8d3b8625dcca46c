"""Limits of the cost of loading and compiling a model, and the account of the cost so far.

A file of a few hundred bytes can describe nested loops, functions that call each other, or
constants that double with each operation. Operations and constants that exceed the contents of the
model's file are charged to one budget, and so is the time that loading takes.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod

from crosschip.ir.bodies import walk_constants, walk_operations
from crosschip.ir.dataclass import dataclass
from crosschip.ir.errors import BudgetError, InputError
from crosschip.ir.model import Model


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of the cost of loading and compiling one model.

    The defaults are many times what any of some thousand real models takes. A machine with a few
    gigabytes of memory can afford them while its user waits.

    Args:
        bytes: bytes of constants that may be computed, in addition to twice the bytes of the
            constants in the model's files.
        tensor_bytes: the largest size of a tensor with a static shape, in bytes.
        operations: the largest number of operations that functions and loops expand to.
        programs: the largest number of programs that devices compile: one per segment of the model
            and of the bodies of control flow that the runtime runs.
        seconds: the time limit of importing, of simplifying and of querying devices, each. The
            time that a device takes to compile does not count.

    Raises:
        InputError: a limit is not a positive number.
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
    """The cost so far that is charged to a budget."""

    __slots__ = ("budget", "bytes", "ends", "granted", "operations")

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.bytes = self.granted = self.operations = 0
        # An integer may be too large to be added to a float.
        self.ends = time.monotonic() + min(budget.seconds, sys.float_info.max)


_account: ContextVar[_Account | None] = ContextVar("crosschip_budget", default=None)


@contextmanager
def spending(budget: Budget | None = None) -> Iterator[None]:
    """Charge the cost of the `with` block to a budget, the default one if `None`.

    Raises:
        InputError: `budget` is not a `Budget`.
    """
    if budget is not None and not isinstance(budget, Budget):
        raise InputError(f"budget is {budget!r}, but must be a crosschip.Budget, or None")
    token = _account.set(_Account(budget or Budget()))
    try:
        yield
    finally:
        _account.reset(token)


def spend(*, operations: int = 0, bytes: int = 0) -> None:
    """Charge the current budget, if there is one, and check its time limit.

    Args:
        operations: number of operations to be created.
        bytes: bytes of constants to be computed.

    Raises:
        BudgetError: a limit is exceeded.
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
    """Check that the current budget, if there is one, suffices; charge nothing.

    Args:
        operations: number of operations that functions expand to.
        programs: number of programs that devices compile.

    Raises:
        BudgetError: a limit would be exceeded.
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
    """Check the size of all tensors, and allow computed constants in proportion to the model's.

    Raises:
        BudgetError: a tensor with a static shape exceeds `tensor_bytes`.
    """
    account = _account.get()
    if account is None:
        return
    limit = account.budget.tensor_bytes
    account.granted = 2 * sum(
        o.content.nbytes for o in walk_constants(model) if o.content is not None
    )
    results = (operand for operation in walk_operations(model) for operand in operation.outputs)
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
