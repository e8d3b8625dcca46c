"""The intermediate representation: models of standard operations on typed operands.

The package depends on no operator, file format or device. Names are imported at first use, because
running a compiled model needs few of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crosschip.ir.branches import If as If
    from crosschip.ir.budget import Budget as Budget
    from crosschip.ir.builder import Builder as Builder
    from crosschip.ir.builder import constant as constant
    from crosschip.ir.control import ControlFlow as ControlFlow
    from crosschip.ir.dimension import Dim as Dim
    from crosschip.ir.dimension import Dimension as Dimension
    from crosschip.ir.dimension import Shape as Shape
    from crosschip.ir.dimension import symbol as symbol
    from crosschip.ir.dimension import unknown as unknown
    from crosschip.ir.errors import BudgetError as BudgetError
    from crosschip.ir.errors import CacheError as CacheError
    from crosschip.ir.errors import DeadlineError as DeadlineError
    from crosschip.ir.errors import DeviceError as DeviceError
    from crosschip.ir.errors import ElementTypeError as ElementTypeError
    from crosschip.ir.errors import Error as Error
    from crosschip.ir.errors import InputError as InputError
    from crosschip.ir.errors import ModelError as ModelError
    from crosschip.ir.errors import ModelFileError as ModelFileError
    from crosschip.ir.errors import QueueFullError as QueueFullError
    from crosschip.ir.errors import UnsupportedError as UnsupportedError
    from crosschip.ir.extension import Extension as Extension
    from crosschip.ir.loops import Loop as Loop
    from crosschip.ir.loops import Scan as Scan
    from crosschip.ir.model import Model as Model
    from crosschip.ir.model import Operand as Operand
    from crosschip.ir.model import Operation as Operation
    from crosschip.ir.model import Origin as Origin
    from crosschip.ir.size_arithmetic import SizeArithmetic as SizeArithmetic
    from crosschip.ir.size_arithmetic import express as express
    from crosschip.ir.types import Arithmetic as Arithmetic
    from crosschip.ir.types import Array as Array
    from crosschip.ir.types import ElementType as ElementType
    from crosschip.ir.types import Quantization as Quantization
    from crosschip.ir.types import TensorType as TensorType

_MODULES = {
    "branches": "If",
    "budget": "Budget",
    "builder": "Builder constant",
    "control": "ControlFlow",
    "dimension": "Dim Dimension Shape symbol unknown",
    "errors": "BudgetError CacheError DeadlineError DeviceError ElementTypeError Error InputError "
    "ModelError ModelFileError QueueFullError UnsupportedError",
    "extension": "Extension",
    "loops": "Loop Scan",
    "model": "Model Operand Operation Origin",
    "size_arithmetic": "SizeArithmetic express",
    "types": "Arithmetic Array ElementType Quantization TensorType",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    member = globals()[name] = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    return member
