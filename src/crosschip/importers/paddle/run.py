"""Runs the functions that import operators, one operator after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from crosschip.importers.packaged import arguments_by_name
from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.lod import hand_on
from crosschip.importers.paddle.program import Operator, within
from crosschip.importers.paddle.scales import reals_read, round_made
from crosschip.importers.paddle.table import TABLE
from crosschip.importers.paddle.values import Values
from crosschip.ir import ModelError, UnsupportedError
from crosschip.ir.budget import spend
from crosschip.ops.definition.custom import PackagedOperator
from crosschip.ops.packages import operator_titled


def run(operators: Iterable[Operator], values: Values) -> None:
    """Build what operators stand for.

    Raises:
        ModelError: an operator breaks a rule; the message names it.
        UnsupportedError: an operator is used in a way that cannot be expressed.
    """
    builder = values.builder
    around = builder.origins
    for operator in operators:
        spend()
        builder.origins = (operator.origin,)
        try:
            if values.lods:
                hand_on(operator, values.lods)
            _function(operator.type)(Context(reals_read(operator, values), values))
            round_made(operator, values)
        except (ModelError, UnsupportedError) as error:
            where = f"operator {operator.number} ({operator.label})"
            raise within(where, error) from None
        except (ArithmeticError, LookupError, MemoryError, ValueError) as error:
            # A function computes with the program's numbers, which may be anything.
            where = f"operator {operator.number} ({operator.label})"
            raise ModelError(f"{where}: its numbers do not go together: {error}") from None
    builder.origins = around


def _function(name: str) -> Callable[[Context], None]:
    """The function that imports an operator: a package's operator may take its place."""
    packaged = operator_titled(name)
    if packaged is None or (name in TABLE and not packaged.overrides):
        return TABLE[name]
    return partial(_by_package, packaged)


def _by_package(operator: type[PackagedOperator], context: Context) -> None:
    arguments = arguments_by_name(operator, context.filled(), context.setting)
    context.make_in_order(operator, arguments)
