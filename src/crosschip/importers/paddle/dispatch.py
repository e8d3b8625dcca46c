"""Import of a list of operators by their registered functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from crosschip.importers.packaged import arguments_by_name
from crosschip.importers.paddle.context import TABLE, Context
from crosschip.importers.paddle.lod import propagate_lod
from crosschip.importers.paddle.program import Operator, prefix_error
from crosschip.importers.paddle.scales import dequantize_inputs, round_outputs
from crosschip.importers.paddle.values import Values
from crosschip.ir import ModelError, UnsupportedError
from crosschip.ir.budget import spend
from crosschip.ops.definition.custom import PackagedOperator
from crosschip.ops.packages import of_title


def import_operators(operators: Iterable[Operator], values: Values) -> None:
    """Build the operations of a program or block.

    Raises:
        ModelError: an operator is invalid; the message names the operator.
        UnsupportedError: an operator is used in a way that cannot be expressed.
    """
    builder = values.builder
    outer_origins = builder.origins
    for operator in operators:
        spend()
        builder.origins = (operator.origin,)
        try:
            if values.lods:
                propagate_lod(operator, values.lods)
            _function(operator.type)(Context(dequantize_inputs(operator, values), values))
            round_outputs(operator, values)
        except (ModelError, UnsupportedError) as error:
            where = f"operator {operator.number} ({operator.label})"
            raise prefix_error(where, error) from None
        except (ArithmeticError, LookupError, MemoryError, ValueError) as error:
            # Functions compute with numbers of the program, which a damaged file can set freely.
            where = f"operator {operator.number} ({operator.label})"
            raise ModelError(f"{where}: its numbers are inconsistent: {error}") from None
    builder.origins = outer_origins


def _function(name: str) -> Callable[[Context], None]:
    """Return the function that imports an operator, which may be a custom one that overrides."""
    custom = of_title(name)
    if custom is None or (name in TABLE and not custom.overrides):
        return TABLE[name]
    return partial(_import_custom, custom)


def _import_custom(operator: type[PackagedOperator], context: Context) -> None:
    arguments = arguments_by_name(operator, context.inputs_by_slot(), context.raw_parameter)
    context.make_in_order(operator, arguments)
