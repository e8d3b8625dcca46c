"""Conversion of a program to a model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from crosschip.importers.paddle import operators  # noqa: F401, fills the table
from crosschip.importers.paddle.context import TABLE
from crosschip.importers.paddle.dispatch import import_operators
from crosschip.importers.paddle.lod import InputLod, level_name
from crosschip.importers.paddle.program import Program, Variable, all_operators
from crosschip.importers.paddle.scales import dequantize_weight, quantized_weights
from crosschip.importers.paddle.values import Values
from crosschip.ir import Array, Builder, Dim, Model, TensorType, symbol
from crosschip.ir.files import Stored
from crosschip.ops.packages import of_title

_IMAGE_AXES = "NCHW"


def check(where: str, program: Program) -> None:
    """Raise UnsupportedError, listing types and counts, if operators have no import function."""
    types = (operator.type for operator in all_operators(program.operators))
    TABLE.check(where, (name for name in types if name in TABLE or of_title(name) is None))


def build(name: str, program: Program, parameters: Mapping[str, Array | Stored]) -> Model:
    """Build the model of a program.

    Args:
        name: the model's name.
        program: a program that passes `check`; its operators are removed while they are imported.
        parameters: the values of the parameters, by name.

    Raises:
        ModelError: an operator is invalid; the message names the operator.
        UnsupportedError: an operator is used in a way that cannot be expressed.
    """
    builder = Builder(name)
    values = Values(builder, _used_variables(program))
    for variable in program.inputs:
        operand = builder.input(values.new_name(variable.name), _input_type(variable, program))
        values.define(variable.name, operand)
        if variable.levels:
            values.lods[variable.name] = InputLod(builder, variable.name, variable.levels)
    quantized = quantized_weights(program.operators)
    for parameter, value in parameters.items():
        operand = builder.constant(value, values.new_name(parameter))
        if parameter in quantized:
            operand = dequantize_weight(builder, operand, quantized[parameter])
        values.define(parameter, operand)
    # Casts of constants overflow silently, as in Paddle.
    with np.errstate(all="ignore"):
        import_operators(program.pop_operators(), values)
    for output, variable_name in program.outputs.items():
        builder.output(output, values[variable_name])
    for output, variable_name in program.outputs.items():
        lod = values.lods.get(variable_name)
        if lod is not None and not lod.is_input:
            for level, offsets in enumerate(lod.levels()):
                builder.output(level_name(output, level), offsets)
    return builder.build()


def _used_variables(program: Program) -> set[str]:
    """Return the variables that are read, defined or yielded in blocks, or program outputs."""
    used = set(program.outputs.values())
    for operator in all_operators(program.operators):
        used.update(*operator.inputs.values())
        for block in operator.blocks:
            used.update(block.outputs, *operator.outputs.values())
    return used


def _input_type(variable: Variable, program: Program) -> TensorType:
    """Return the type of an input, with a symbol for each unknown size.

    With a single input, the symbol is `N` for axis 0, `C`, `H` and `W` for the other axes of an
    image, and otherwise the input's name with the axis: `x_2`. With several inputs, all symbols
    begin with the input's name, `x_N`, because the file does not state which sizes are equal.
    """
    is_single = len(program.inputs) == 1
    is_image = len(variable.shape) == len(_IMAGE_AXES)

    def size_of(axis: int, size: int) -> Dim:
        if size != -1:
            return size
        letter = _IMAGE_AXES[axis] if is_image or axis == 0 else ""
        return symbol(letter if is_single and letter else f"{variable.name}_{letter or axis}")

    shape = tuple(size_of(axis, size) for axis, size in enumerate(variable.shape))
    return TensorType(variable.element_type, shape)
