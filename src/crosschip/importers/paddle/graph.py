"""Turns a program into a model, one operator after the other."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crosschip.importers.paddle import operators  # noqa: F401, fills the table
from crosschip.importers.paddle.context import Context
from crosschip.importers.paddle.program import Operator, Program, Variable, within
from crosschip.importers.paddle.table import TABLE
from crosschip.importers.paddle.values import Values
from crosschip.ir import (
    Array,
    Builder,
    Dim,
    Model,
    ModelError,
    TensorType,
    UnsupportedError,
    symbol,
)
from crosschip.ir.budget import spend
from crosschip.ir.files import Stored

_IMAGE_AXES = "NCHW"
_QUANTIZED = ("enable_int8", "enable_int16")
"""Attributes that Paddle Lite's tools set on operators that compute on integers."""


def check(where: str, program: Program) -> None:
    """Refuse a program with operators that no function imports.

    Raises:
        UnsupportedError: there is at least one; the message lists them all, with counts.
    """
    TABLE.check(where, (operator.type for operator in program.operators))


def build(name: str, program: Program, parameters: Mapping[str, Array | Stored]) -> Model:
    """Build the model of a program.

    Args:
        name: what to call the model.
        program: one that `check` lets through.
        parameters: their values, by name.

    Raises:
        ModelError: an operator breaks a rule; the message names it.
        UnsupportedError: an operator is used in a way that cannot be expressed.
    """
    builder = Builder(name)
    values = Values(builder, _read(program))
    for variable in program.inputs:
        operand = builder.input(values.new_name(variable.name), _input_type(variable, program))
        values.define(variable.name, operand)
    for parameter, value in parameters.items():
        operand = builder.constant(value, values.new_name(parameter))
        values.define(parameter, operand)
    # Numbers that the element type cannot hold come out as NumPy has it, as they do in Paddle.
    with np.errstate(all="ignore"):
        for operator in program.operators:
            spend()
            try:
                _expect_reals(operator)
                TABLE[operator.type](Context(operator, values))
            except (ModelError, UnsupportedError) as error:
                where = f"operator {operator.number} ({operator.label})"
                raise within(where, error) from None
            except (ArithmeticError, LookupError, MemoryError, ValueError) as error:
                # A function computes with the program's numbers, which may be anything.
                where = f"operator {operator.number} ({operator.label})"
                raise ModelError(f"{where}: its numbers do not go together: {error}") from None
    for output, variable_name in program.outputs.items():
        builder.output(output, values[variable_name])
    return builder.build()


def _read(program: Program) -> set[str]:
    """The variables that an operator reads or the program hands out."""
    read = set(program.outputs.values())
    for operator in program.operators:
        read.update(*operator.inputs.values())
    return read


def _expect_reals(operator: Operator) -> None:
    """Refuse an operator of which attributes say how integers stand for reals."""
    for name in _QUANTIZED:
        if operator.attributes.get(name) is True:
            raise UnsupportedError(
                f"{name} True: integers with their scales in attributes cannot be expressed; "
                f"export without quantization, or as ONNX"
            )


def _input_type(variable: Variable, program: Program) -> TensorType:
    """The type of an input, with a symbol for each size that is not known.

    In a model of one input the symbol is `N` for the first axis, `H` and `W` for those of an image,
    and else the input's name with the axis, `x_2`. Nothing in the file says that sizes of two
    inputs are equal; in a model of several, all symbols begin with the input's name, `x_N`.
    """
    alone = len(program.inputs) == 1
    is_image = len(variable.shape) == len(_IMAGE_AXES)

    def size_of(axis: int, size: int) -> Dim:
        if size != -1:
            return size
        letter = _IMAGE_AXES[axis] if is_image or axis == 0 else ""
        return symbol(letter if alone and letter else f"{variable.name}_{letter or axis}")

    shape = tuple(size_of(axis, size) for axis, size in enumerate(variable.shape))
    return TensorType(variable.element_type, shape)
