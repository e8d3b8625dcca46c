"""Turns a program into a model, one operator after the other."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crosschip.importers.paddle import operators  # noqa: F401, fills the table
from crosschip.importers.paddle.lod import GivenLod, level_name
from crosschip.importers.paddle.program import Program, Variable, all_operators
from crosschip.importers.paddle.run import run
from crosschip.importers.paddle.scales import quantized_weights, real_weight
from crosschip.importers.paddle.table import TABLE
from crosschip.importers.paddle.values import Values
from crosschip.ir import (
    Array,
    Builder,
    Dim,
    Model,
    TensorType,
    symbol,
)
from crosschip.ir.files import Stored
from crosschip.ops.packages import operator_titled

_IMAGE_AXES = "NCHW"


def check(where: str, program: Program) -> None:
    """Refuse a program with operators that no function imports.

    Raises:
        UnsupportedError: there is at least one; the message lists them all, with counts.
    """
    types = (operator.type for operator in all_operators(program.operators))
    TABLE.check(where, (name for name in types if name in TABLE or operator_titled(name) is None))


def build(name: str, program: Program, parameters: Mapping[str, Array | Stored]) -> Model:
    """Build the model of a program.

    Args:
        name: what to call the model.
        program: one that `check` lets through; its operators are taken out of it.
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
        if variable.levels:
            values.lods[variable.name] = GivenLod(builder, variable.name, variable.levels)
    quantized = quantized_weights(program.operators)
    for parameter, value in parameters.items():
        operand = builder.constant(value, values.new_name(parameter))
        if parameter in quantized:
            operand = real_weight(builder, operand, quantized[parameter])
        values.define(parameter, operand)
    # Numbers that the element type cannot hold come out as NumPy has it, as they do in Paddle.
    with np.errstate(all="ignore"):
        run(program.take_operators(), values)
    for output, variable_name in program.outputs.items():
        builder.output(output, values[variable_name])
    for output, variable_name in program.outputs.items():
        lod = values.lods.get(variable_name)
        if lod is not None and not lod.is_given:
            for level, offsets in enumerate(lod.levels()):
                builder.output(level_name(output, level), offsets)
    return builder.build()


def _read(program: Program) -> set[str]:
    """The variables that an operator reads or hands on, or the program hands out."""
    read = set(program.outputs.values())
    for operator in all_operators(program.operators):
        read.update(*operator.inputs.values())
        for block in operator.blocks:
            read.update(block.outputs, *operator.outputs.values())
    return read


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
