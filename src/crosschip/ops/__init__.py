"""The standard operators: `from crosschip.ops import Conv2D, Relu`.

Importing the package imports all modules in `crosschip.ops.standard`, which register their
operators. A new family is a new file there. Examples are imported on request.
"""

from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from crosschip.ops import standard
from crosschip.ops.definition.operator import Operator
from crosschip.ops.definition.registry import operator, operator_named, operators

if TYPE_CHECKING:
    from crosschip.ops.definition.examples import examples_of as examples_of
    from crosschip.ops.standard.activation import *
    from crosschip.ops.standard.adaptive_pooling import *
    from crosschip.ops.standard.arithmetic import *
    from crosschip.ops.standard.attention import *
    from crosschip.ops.standard.blocks import *
    from crosschip.ops.standard.cached_attention import *
    from crosschip.ops.standard.comparison import *
    from crosschip.ops.standard.control import *
    from crosschip.ops.standard.conversion import *
    from crosschip.ops.standard.convolution import *
    from crosschip.ops.standard.creation import *
    from crosschip.ops.standard.deformable import *
    from crosschip.ops.standard.detection import *
    from crosschip.ops.standard.indexing import *
    from crosschip.ops.standard.integers import *
    from crosschip.ops.standard.joining import *
    from crosschip.ops.standard.layout import *
    from crosschip.ops.standard.logical import *
    from crosschip.ops.standard.matrix import *
    from crosschip.ops.standard.normalization import *
    from crosschip.ops.standard.padding import *
    from crosschip.ops.standard.pooling import *
    from crosschip.ops.standard.quantization import *
    from crosschip.ops.standard.rearranging import *
    from crosschip.ops.standard.recurrent import *
    from crosschip.ops.standard.reduction import *
    from crosschip.ops.standard.resizing import *
    from crosschip.ops.standard.sampling import *
    from crosschip.ops.standard.searching import *
    from crosschip.ops.standard.slicing import *
    from crosschip.ops.standard.suppression import *
    from crosschip.ops.standard.unary import *

_HOMES = {"examples_of": "crosschip.ops.definition.examples"}

for _module in iter_modules(standard.__path__):
    import_module(f"{standard.__name__}.{_module.name}")

# Type checkers see the classes through the imports above; a test compares these with the registry.
_CLASSES = {_class.__name__: _class for _class in operators().values()}
globals().update(_CLASSES)

__all__ = ["Operator", "examples_of", "operator", "operator_named", "operators", *sorted(_CLASSES)]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    attribute = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return attribute
