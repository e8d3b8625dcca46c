"""Types of operands: element type, shape and quantization."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from crosschip.ir.dataclass import dataclass
from crosschip.ir.dimension import MAX_SIZE, Dim, Shape, substitute
from crosschip.ir.errors import ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]
else:
    Array = np.ndarray

MAX_RANK = 32
"""The largest rank: the limit of NumPy's broadcasting."""


class ElementType(Enum):
    """Type of a tensor element; the value is its name in NumPy and ml_dtypes.

    No standard operator and no constant has the types `STRING` and `OBJECT`; they are for extension
    operations and for model inputs and outputs. An array of `STRING` holds Python `str` objects. A
    value of `OBJECT` is not a tensor and not wrapped in an array: it is a list (sequence), a
    dictionary (map), or an optional value's content or `None`.
    """

    BOOL = "bool"
    INT8 = "int8"
    UINT8 = "uint8"
    INT16 = "int16"
    UINT16 = "uint16"
    INT32 = "int32"
    UINT32 = "uint32"
    INT64 = "int64"
    UINT64 = "uint64"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    FLOAT8E4M3FN = "float8_e4m3fn"
    FLOAT8E4M3FNUZ = "float8_e4m3fnuz"
    FLOAT8E5M2 = "float8_e5m2"
    FLOAT8E5M2FNUZ = "float8_e5m2fnuz"
    FLOAT8E8M0 = "float8_e8m0fnu"
    FLOAT4E2M1 = "float4_e2m1fn"
    INT4 = "int4"
    UINT4 = "uint4"
    INT2 = "int2"
    UINT2 = "uint2"
    STRING = "string"
    OBJECT = "object"

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the NumPy type in native byte order."""
        return _DTYPES[self]

    @property
    def code(self) -> int:
        """Return NNAdapter's code of the type, for parameters that hold a type.

        It is -1 for `STRING` and `OBJECT`, which no parameter holds.
        """
        return _CODES[self]

    @classmethod
    def from_code(cls, code: int) -> ElementType:
        """Return the element type with the code; raise ValueError if there is none."""
        if code not in _BY_CODE:
            raise ValueError(f"{code} is not the code of an element type")
        return _BY_CODE[code]

    @classmethod
    def of(cls, dtype: np.dtype[Any]) -> ElementType:
        """Return the element type of a NumPy type; raise KeyError if there is none.

        `object` has none, because the type does not determine the class of its elements.
        """
        return _ELEMENT_TYPES[dtype]

    def __str__(self) -> str:
        return self.value

    # Enum's hash is Python code that hashes the name; members are singletons, so identity is
    # faster.
    __hash__ = object.__hash__


PYTHONS_TYPES = frozenset({ElementType.STRING, ElementType.OBJECT})
"""Types whose values are Python objects, which no device's memory can hold."""


class _Dtypes(dict[ElementType, np.dtype[Any]]):
    """NumPy types by element type; those of ml_dtypes are inserted when one is first looked up.

    Importing ml_dtypes takes longer than loading a small model, and few models need it.
    """

    def __missing__(self, element_type: ElementType) -> np.dtype[Any]:
        _insert_ml_dtypes()
        return self[element_type]


class _ElementTypes(dict[np.dtype[Any], ElementType]):
    """Element types by NumPy type."""

    def __missing__(self, dtype: np.dtype[Any]) -> ElementType:
        if len(self) == len(ElementType) - len(PYTHONS_TYPES):
            raise KeyError(dtype)
        _insert_ml_dtypes()
        return self[dtype]


def _insert_ml_dtypes() -> None:
    """Insert the types of ml_dtypes."""
    import ml_dtypes

    for element_type in ElementType:
        if element_type not in _DTYPES:
            dtype = np.dtype(getattr(ml_dtypes, element_type.value))
            _ELEMENT_TYPES[dtype] = element_type
            _DTYPES[element_type] = dtype


_NUMPYS = (
    *("bool", "float16", "float32", "float64"),
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
)
_DTYPES = _Dtypes({ElementType(name): np.dtype(name) for name in _NUMPYS})
_ELEMENT_TYPES = _ElementTypes({dtype: type_ for type_, dtype in _DTYPES.items()})
_DTYPES.update(dict.fromkeys(PYTHONS_TYPES, np.dtype(object)))

# NNAdapter numbers its precisions 0 to 11 in this order, and its quantized ones 24 to 32. bfloat16
# has the first unused number; types that NNAdapter lacks begin at 64.
_UNCODED = (ElementType.BFLOAT16, *PYTHONS_TYPES)
_CODED: list[ElementType] = [t for t in ElementType if t not in _UNCODED]
_CODES: dict[ElementType, int] = {
    t: code if code < 12 else code + 52 for code, t in enumerate(_CODED)
}
_CODES[ElementType.BFLOAT16] = 12
_BY_CODE: dict[int, ElementType] = {code: element_type for element_type, code in _CODES.items()}
_CODES.update(dict.fromkeys(PYTHONS_TYPES, -1))

FLOATS = frozenset(map(ElementType, ("float16", "bfloat16", "float32", "float64")))
HALF_FLOATS = frozenset({ElementType.FLOAT16, ElementType.BFLOAT16})
INTEGERS = frozenset(
    ElementType(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)
)
INDICES = frozenset({ElementType.INT32, ElementType.INT64})
BOOLEANS = frozenset({ElementType.BOOL})
NUMBERS = FLOATS | INTEGERS
NARROW_FLOATS = frozenset(t for t in ElementType if t.value.startswith(("float8", "float4")))
NARROW_INTEGERS = frozenset(map(ElementType, ("int4", "uint4", "int2", "uint2")))
NARROW_TYPES = NARROW_FLOATS | NARROW_INTEGERS
"""Types for storage: they can be moved and converted, but not computed in."""
ALL_TYPES = NUMBERS | BOOLEANS | NARROW_TYPES
QUANTIZABLE = (
    frozenset(map(ElementType, ("int8", "uint8", "int16", "uint16", "int32")))
    | NARROW_INTEGERS
    | (NARROW_FLOATS - {ElementType.FLOAT8E8M0})
)
"""Types whose elements can represent reals by a scale: integers and the narrow floats."""


OBJECTS = (list, dict, np.ndarray, type(None))
"""The classes of values of `ElementType.OBJECT`."""


class Arithmetic(StrEnum):
    """How an operation computes a quantized output.

    `REAL` computes reals, rounded once; `FIXED_POINT` computes integers as TensorFlow Lite's
    reference kernels do. Both agree within one step or few, so that a device may ignore it.
    """

    REAL = "real"
    FIXED_POINT = "fixed point"


@dataclass(frozen=True, slots=True)
class Quantization:
    """Affine quantization: `real = (integer - zero_point) * scale`.

    Args:
        scale: one positive number per tensor, or one per index of `axis`; rounded to float32, the
            type of scales in all file formats and operators.
        zero_point: the integer that represents 0, one per scale; all 0 if symmetric.
        axis: the axis that the scales run along; `None` for one scale per tensor.
        arithmetic: how an operation computes such an output. It does not change what integers
            represent, so quantizations that differ only in it are equal.
    """

    scale: tuple[float, ...]
    zero_point: tuple[int, ...] = (0,)
    axis: int | None = None
    arithmetic: Arithmetic = field(default=Arithmetic.REAL, compare=False)

    def __post_init__(self) -> None:
        if self.axis is None and len(self.scale) != 1:
            raise ValueError(f"{len(self.scale)} scales need an axis to run along")
        if len(self.zero_point) == 1 and len(self.scale) > 1:
            object.__setattr__(self, "zero_point", self.zero_point * len(self.scale))
        if len(self.zero_point) != len(self.scale):
            raise ValueError(f"{len(self.scale)} scales, but {len(self.zero_point)} zero points")
        with np.errstate(over="ignore"):
            scale = np.array(self.scale, np.float32)
        if not np.all(np.isfinite(scale) & (scale > 0)):
            raise ValueError("every scale must be a positive, finite number, as a float32 too")
        object.__setattr__(self, "scale", tuple(scale.tolist()))

    @property
    def symmetric(self) -> bool:
        """Return whether the integer 0 represents the real 0 for all scales."""
        return not any(self.zero_point)

    def __str__(self) -> str:
        def brief(values: tuple[float, ...] | tuple[int, ...]) -> str:
            shown = ", ".join(f"{v:g}" for v in values[:3])
            return f"[{shown}, … {len(values)}]" if len(values) > 3 else shown

        zero = "" if self.symmetric else f", zero {brief(self.zero_point)}"
        axis = "" if self.axis is None else f", axis {self.axis}"
        arithmetic = "" if self.arithmetic is Arithmetic.REAL else f", {self.arithmetic}"
        return f"quantized(scale {brief(self.scale)}{zero}{axis}{arithmetic})"


@dataclass(frozen=True, slots=True)
class TensorType:
    """Element type, shape and quantization of an operand.

    Args:
        element_type: the type of the stored elements; an integer type if quantized.
        shape: one `int` or `Dimension` per axis; `None` if the rank is unknown.
        quantization: how stored elements represent reals; `None` if unquantized.
        shape_value: the elements, in C order, of a small integer or boolean tensor computed from
            shapes; `None` if they are unknown.
    """

    element_type: ElementType
    shape: Shape | None
    quantization: Quantization | None = None
    shape_value: tuple[Dim, ...] | None = None

    def __post_init__(self) -> None:
        if self.shape is not None and len(self.shape) > MAX_RANK:
            raise ModelError(f"a tensor of {len(self.shape)} axes: there are at most {MAX_RANK}")
        for size in self.shape or ():
            if isinstance(size, int) and size > MAX_SIZE:
                raise ModelError(f"a tensor with an axis of over {MAX_SIZE} elements")
        for value in self.shape_value or ():
            if isinstance(value, int) and not -MAX_SIZE - 1 <= value <= MAX_SIZE:
                # The stored value wraps around at 64 bits, so it is unknown.
                object.__setattr__(self, "shape_value", None)
                break

    @property
    def static_shape(self) -> tuple[int, ...] | None:
        """Return the shape if all sizes are known, else `None`."""
        if self.shape is None:
            return None
        for size in self.shape:
            if not isinstance(size, int):
                return None
        return cast(tuple[int, ...], self.shape)

    @property
    def zero(self) -> int:
        """Return the stored element that represents 0: the zero point if quantized per tensor."""
        quantization = self.quantization
        if quantization is None or quantization.axis is not None:
            return 0
        return quantization.zero_point[0]

    def admits(self, array: Array) -> bool:
        """Return whether an array has the element type, and the shape as far as it is known."""
        if array.dtype != self.element_type.dtype:
            return False
        return self.shape is None or (
            len(self.shape) == array.ndim
            and all(
                size == actual
                for size, actual in zip(self.shape, array.shape, strict=True)
                if isinstance(size, int)
            )
        )

    def fits(self, declared: TensorType) -> bool:
        """Return whether a tensor of this type can have the declared type.

        Element types and quantizations must be equal; shapes must not be known to differ.
        """
        if (
            self.element_type is not declared.element_type
            or self.quantization != declared.quantization
        ):
            return False
        if self.shape == declared.shape or self.shape is None or declared.shape is None:
            return True
        return len(self.shape) == len(declared.shape) and all(
            size == other or not isinstance(size, int) or not isinstance(other, int)
            for size, other in zip(self.shape, declared.shape, strict=True)
        )

    def substitute(self, sizes: Mapping[str, Dim]) -> TensorType:
        """Return the type with named sizes substituted."""
        if self.shape is None or not sizes:
            return self
        shape = tuple(substitute(size, sizes) for size in self.shape)
        value = self.shape_value and tuple(substitute(size, sizes) for size in self.shape_value)
        return replace(self, shape=shape, shape_value=value)

    def __str__(self) -> str:
        shape = "[*]" if self.shape is None else f"[{', '.join(map(str, self.shape))}]"
        quantization = f" {self.quantization}" if self.quantization else ""
        return f"{self.element_type}{shape}{quantization}"
