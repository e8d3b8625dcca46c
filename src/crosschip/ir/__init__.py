"""The intermediate representation: models of standard operations on typed operands.

Nothing here knows an operator, a file format or a device.
"""

from crosschip.ir.branches import If
from crosschip.ir.budget import Budget
from crosschip.ir.builder import Builder, constant
from crosschip.ir.control import ControlFlow
from crosschip.ir.dimension import Dim, Dimension, Shape, symbol, unknown
from crosschip.ir.errors import (
    BudgetError,
    CacheError,
    DeadlineError,
    DeviceError,
    ElementTypeError,
    Error,
    InputError,
    ModelError,
    ModelFileError,
    QueueFullError,
    UnsupportedError,
)
from crosschip.ir.extension import Extension
from crosschip.ir.loops import Loop, Scan
from crosschip.ir.model import Model, Operand, Operation, Origin
from crosschip.ir.types import Array, ElementType, Quantization, TensorType

__all__ = [
    "Array",
    "Budget",
    "BudgetError",
    "Builder",
    "CacheError",
    "ControlFlow",
    "DeadlineError",
    "DeviceError",
    "Dim",
    "Dimension",
    "ElementType",
    "ElementTypeError",
    "Error",
    "Extension",
    "If",
    "InputError",
    "Loop",
    "Model",
    "ModelError",
    "ModelFileError",
    "Operand",
    "Operation",
    "Origin",
    "Quantization",
    "QueueFullError",
    "Scan",
    "Shape",
    "TensorType",
    "UnsupportedError",
    "constant",
    "symbol",
    "unknown",
]
