"""Tensor slots and parameter slots, in which an operator's class body is written.

A slot is declared once, as a class attribute, and read from an operation by the same name. A tensor
slot reads as the operand that fills it. A parameter slot reads as a plain Python value; where the
operand that fills it is computed when the model runs, reading raises `ComputedParameter`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum, IntEnum
from typing import Generic, Self, TypeVar, cast, overload

import numpy as np

from crosschip.ir import (
    Array,
    ElementType,
    ElementTypeError,
    Error,
    ModelError,
    Operand,
    Operation,
    TensorType,
)
from crosschip.ir.types import BOOLEANS, FLOATS, INDICES, QUANTIZABLE
from crosschip.ops.definition.quantized import check_zero_point, value_type

T = TypeVar("T")
E = TypeVar("E", bound=Enum)

_INT32_RANGE = range(-(2**31), 2**31)
ELEMENT_TYPE = "element type"
"""The kind of a parameter that names one."""


class ComputedParameter(Error):
    """A parameter's value was asked for, but it is known only when the model runs."""

    def __init__(self, slot: Slot) -> None:
        super().__init__(f"{slot.name} is computed when the model runs")
        self.slot = slot


class Slot:
    """A named place for an operand.

    Attributes:
        name: the attribute of the operator's class that it is.
        index: where in `Operation.inputs` it is; from the end if a slot before it takes many.
        types: the element types that it takes.
        optional: whether it may be left out.
        kind: what fills it, in a word or two.
        like: the slot whose element type it must share, if any.
        takes_reals: whether it takes a tensor that may be real, and so quantized.
    """

    name: str
    index: int
    variadic = False
    parameter = False
    kind = "tensor"

    def __init__(
        self, types: Collection[ElementType], optional: bool, like: str | None = None
    ) -> None:
        self.types = frozenset(types)
        self.optional = optional
        self.like = like
        self.takes_reals = not self.parameter and ElementType.FLOAT32 in self.types

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def accept(self, operand: Operand) -> None:
        """Check an operand that is to fill the slot.

        Raises:
            ModelError: it does not fit; the message says what the slot takes.
        """
        type_ = operand.type
        if type_.quantization is not None and self.takes_reals:
            if type_.element_type not in QUANTIZABLE:
                raise ElementTypeError(f"{self.name}: {type_.element_type} cannot be quantized")
            if not _scales_fit(type_):
                raise ModelError(f"{self.name}: {type_} does not have a scale for each index")
            check_zero_point(f"{self.name}: ", type_.quantization, type_.element_type)
        elif type_.element_type not in self.types:
            accepted = ", ".join(sorted(map(str, self.types)))
            raise ElementTypeError(f"{self.name}: takes {accepted}, not {type_.element_type}")

    def reads_reals(self, operand: Operand) -> bool:
        """Tell whether it reads what a quantized operand's integers stand for."""
        return operand.type.quantization is not None and self.takes_reals

    def element_type(self, operand: Operand) -> ElementType:
        """The type of the elements that it reads from an operand."""
        return value_type(operand) if self.takes_reals else operand.type.element_type

    def encode(self, value: object) -> Array:
        """The array that stands for a plain value."""
        return np.asarray(value)


def _scales_fit(type_: TensorType) -> bool:
    """Tell whether there are as many scales as their axis is long, if that is known."""
    axis = type_.quantization.axis if type_.quantization else None
    if type_.quantization is None or axis is None or type_.shape is None:
        return True
    size = type_.shape[axis] if -len(type_.shape) <= axis < len(type_.shape) else 0
    return not isinstance(size, int) or size == len(type_.quantization.scale)


class Tensor(Slot):
    """A slot that one tensor must fill."""

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Operation, owner: type) -> Operand: ...
    def __get__(self, instance: Operation | None, owner: type) -> Self | Operand:
        return self if instance is None else cast(Operand, instance.inputs[self.index])


class OptionalTensor(Slot):
    """A slot that one tensor may fill; `None` where it is left out."""

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Operation, owner: type) -> Operand | None: ...
    def __get__(self, instance: Operation | None, owner: type) -> Self | Operand | None:
        return self if instance is None else instance.inputs[self.index]


class Tensors(Slot):
    """A slot that any number of tensors fill, at least one; an operator has one at most."""

    variadic = True
    kind = "tensors"
    after: int

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Operation, owner: type) -> tuple[Operand, ...]: ...
    def __get__(self, instance: Operation | None, owner: type) -> Self | tuple[Operand, ...]:
        if instance is None:
            return self
        stop = len(instance.inputs) - self.after
        return cast(tuple[Operand, ...], instance.inputs[self.index : stop])


class Parameter(Slot, Generic[T]):
    """A slot that says how to compute; reads as a value of type `T`.

    Attributes:
        default: the value where it is left out.
        options: the values that there are, if it is a choice.
        rank: 0 for one number (a tensor of one element will do), 1 for a list.
        length: how many numbers a list must have, if that is fixed.
        axis_length: how many it must have for each axis of an image; 0 if it is not such a list.
    """

    parameter = True
    axis_length = 0

    def __init__(
        self,
        types: Collection[ElementType],
        decode: Callable[[Array], T],
        default: T | None,
        *,
        kind: str,
        optional: bool,
        options: type[Enum] | None = None,
        rank: int = 0,
        length: int | None = None,
    ) -> None:
        super().__init__(types, optional)
        self.kind = kind
        self.decode = decode
        self.default = default
        # As it reads where it is spelled out: a real number is a float32 in a model.
        self._left_out = default if default is None else decode(self.encode(default))
        self.options = options
        self.rank = rank
        self.length = length

    def set_spatial_rank(self, rank: int) -> None:
        """Fix the length, and repeat the default, for images of so many axes."""
        self.length = rank * self.axis_length
        if isinstance(self.default, tuple):
            self.default = cast(T, self.default * self.length)
            self._left_out = self.decode(self.encode(self.default))

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Operation, owner: type) -> T: ...
    def __get__(self, instance: Operation | None, owner: type) -> Self | T:
        if instance is None:
            return self
        operand = instance.inputs[self.index]
        if operand is None:
            return cast(T, self._left_out)
        if operand.value is None:
            raise ComputedParameter(self)
        return self.decode(operand.value)

    def is_default(self, operand: Operand) -> bool:
        """Tell whether an operand is a constant that says what leaving it out says."""
        array, value = operand.value, self._left_out
        if array is None or value is None or array.ndim > 1:
            return False
        if operand.type.element_type not in self.types:
            return False
        if array.size != (len(value) if isinstance(value, tuple) else 1):
            return False
        try:
            decoded = self.decode(array)
        except ValueError:
            return False
        # 0.0 is not -0.0
        return decoded is value or (decoded == value and repr(decoded) == repr(value))

    def symbol(self, operand: Operand) -> str | None:
        """The name of the choice or element type that a constant stands for, if it is one."""
        if operand.value is None:
            return None
        try:
            value = self.decode(operand.value)
        except ValueError:
            return None
        if isinstance(value, ElementType):
            return str(value)
        return value.name if isinstance(value, Enum) else None

    def accept(self, operand: Operand) -> None:
        super().accept(operand)
        shape = operand.type.static_shape
        if shape is not None:
            size = int(np.prod(shape))
            if self.rank == 0 and size != 1:
                raise ModelError(f"{self.name}: takes one value, not a tensor of shape {shape}")
            if self.rank == 1 and len(shape) > 1:
                raise ModelError(f"{self.name}: takes a list, not a tensor of shape {shape}")
            if self.length is not None and size != self.length:
                raise ModelError(f"{self.name}: takes {self.length} values, not {size}")
        if operand.value is not None:
            try:
                self.decode(operand.value)
            except ValueError as error:
                raise ModelError(f"{self.name}: {error}") from None

    def encode(self, value: object) -> Array:
        if isinstance(value, ElementType):
            value = value.code
        array = np.asarray(value)
        real = self.types == FLOATS
        if array.size == 0 or (real and array.dtype.kind in "fi"):
            return array.astype(np.float32 if real else np.int32)
        if array.dtype.kind == "i" and all(int(v) in _INT32_RANGE for v in array.flat):
            return array.astype(np.int32)
        return array


def tensor(types: Collection[ElementType], like: str | None = None) -> Tensor:
    """A tensor of one of the element types, the same as that of the slot `like` if given."""
    return Tensor(types, False, like)


def optional_tensor(types: Collection[ElementType], like: str | None = None) -> OptionalTensor:
    """A tensor that may be left out."""
    return OptionalTensor(types, True, like)


def tensors(types: Collection[ElementType]) -> Tensors:
    """One or more tensors, all of one element type."""
    return Tensors(types, False)


def real(default: float | None = None, *, least: float = -np.inf) -> Parameter[float]:
    """One real number; required if there is no default.

    Args:
        default: what it is if left out.
        least: what it must be at least, and then it cannot be NaN.
    """

    def decode(array: Array) -> float:
        number = float(array.item())
        if least > -np.inf and not number >= least:
            raise ValueError(f"{number:g} is not at least {least:g}")
        return number

    return Parameter(
        FLOATS,
        decode,
        default,
        kind="real number",
        optional=default is not None,
    )


def integer(default: int | None = None) -> Parameter[int]:
    """One integer; required if there is no default."""
    return Parameter(
        INDICES, lambda a: int(a.item()), default, kind="integer", optional=default is not None
    )


def flag(default: bool | None = None) -> Parameter[bool]:
    """Yes or no; required if there is no default."""
    return Parameter(
        BOOLEANS, lambda a: bool(a.item()), default, kind="flag", optional=default is not None
    )


def choice(options: type[E], default: E | None = None) -> Parameter[E]:
    """One of an enumeration's members, stored as its number."""
    return Parameter(
        INDICES,
        lambda a: options(int(a.item())),
        default,
        kind="choice",
        optional=default is not None,
        options=options,
    )


def element_type(default: ElementType | None = None) -> Parameter[ElementType]:
    """An element type, stored as its code."""
    return Parameter(
        INDICES,
        lambda a: ElementType.from_code(int(a.item())),
        default,
        kind=ELEMENT_TYPE,
        optional=default is not None,
    )


def index_type(default: ElementType) -> Parameter[ElementType]:
    """The element type of indices or sizes: int32 or int64, stored as its code."""

    def decode(array: Array) -> ElementType:
        element_type = ElementType.from_code(int(array.item()))
        if element_type not in INDICES:
            raise ValueError(f"{element_type} is neither int32 nor int64")
        return element_type

    return Parameter(INDICES, decode, default, kind=ELEMENT_TYPE, optional=True)


def integers(
    default: tuple[int, ...] | None = None, length: int | None = None
) -> Parameter[tuple[int, ...]]:
    """A list of integers; required if there is no default."""
    return Parameter(
        INDICES,
        lambda a: tuple(a.ravel().tolist()),
        default,
        kind="list of integers",
        optional=default is not None,
        rank=1,
        length=length,
    )


def axis_integers(default: int | None = None, axis_length: int = 1) -> Parameter[tuple[int, ...]]:
    """So many integers for each axis of an image, all alike by default; see `SpatialOperator`."""
    slot = integers(None if default is None else (default,))
    slot.axis_length = axis_length
    return slot


def optional_axis_integers() -> Parameter[tuple[int, ...] | None]:
    """An integer for each axis of an image that may be left out; reads as `None` then."""
    slot = optional_integers()
    slot.axis_length = 1
    return slot


def optional_integer() -> Parameter[int | None]:
    """One integer that may be left out; reads as `None` then."""
    return Parameter(INDICES, lambda a: int(a.item()), None, kind="integer", optional=True)


def optional_integers(length: int | None = None) -> Parameter[tuple[int, ...] | None]:
    """A list of integers that may be left out; reads as `None` then."""

    def decode(array: Array) -> tuple[int, ...] | None:
        return tuple(array.ravel().tolist())

    return Parameter(
        INDICES, decode, None, kind="list of integers", optional=True, rank=1, length=length
    )


def optional_reals(length: int | None = None) -> Parameter[tuple[float, ...] | None]:
    """A list of real numbers that may be left out; reads as `None` then."""

    def decode(array: Array) -> tuple[float, ...] | None:
        return tuple(array.ravel().tolist())

    return Parameter(
        FLOATS, decode, None, kind="list of real numbers", optional=True, rank=1, length=length
    )


def reals(default: tuple[float, ...] | None = None) -> Parameter[tuple[float, ...]]:
    """A list of real numbers; required if there is no default."""
    return Parameter(
        FLOATS,
        lambda a: tuple(a.ravel().tolist()),
        default,
        kind="list of real numbers",
        optional=default is not None,
        rank=1,
    )


class Fuse(IntEnum):
    """The activation applied to an operation's result (NNAdapterFuseCode).

    NaN stays NaN, or becomes one of the bounds: which, is the device's choice.
    """

    NONE = 0
    RELU = 1
    RELU1 = 2
    RELU6 = 3

    @property
    def bounds(self) -> tuple[float, float]:
        """The interval that the result is clipped to."""
        return _FUSE_BOUNDS[self]


_FUSE_BOUNDS: dict[Fuse, tuple[float, float]] = {
    Fuse.NONE: (-np.inf, np.inf),
    Fuse.RELU: (0.0, np.inf),
    Fuse.RELU1: (-1.0, 1.0),
    Fuse.RELU6: (0.0, 6.0),
}


def fuse() -> Parameter[Fuse]:
    """The fused activation, none by default; an operator declares it as `fuse_code`."""
    return choice(Fuse, Fuse.NONE)
