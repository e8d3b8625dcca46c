"""Tensor slots and parameter slots, which an operator's class body declares.

A slot is a class attribute; reading it from an operation returns the operand of a tensor slot, or
the plain Python value of a parameter slot. Reading a parameter that is computed at run time raises
`ComputedParameter`.
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
"""The `kind` of parameters that hold an element type."""


class ComputedParameter(Error):
    """A parameter's value was read, but it is computed at run time."""

    def __init__(self, slot: Slot) -> None:
        super().__init__(f"{slot.name} is computed when the model runs")
        self.slot = slot


class Slot:
    """Named input of an operator.

    Attributes:
        name: the slot's attribute name.
        index: its index in `Operation.inputs`; negative after a variadic slot.
        types: the supported element types.
        optional: whether it may be empty.
        kind: a short description of its values.
        like: the slot whose element type it must share, if any.
        takes_reals: whether its tensors may be float32, and so quantized.
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
        """Check that an operand fits the slot.

        Raises:
            ModelError: it does not; the message says what the slot accepts.
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
        """Return whether the operator reads a quantized operand as reals."""
        return operand.type.quantization is not None and self.takes_reals

    def element_type(self, operand: Operand) -> ElementType:
        """Return the element type that the operator reads from an operand."""
        return value_type(operand) if self.takes_reals else operand.type.element_type

    def encode(self, value: object) -> Array:
        """Return the array of a plain value."""
        return np.asarray(value)


def _scales_fit(type_: TensorType) -> bool:
    """Return whether the number of scales matches the size of their axis, as far as it is known."""
    axis = type_.quantization.axis if type_.quantization else None
    if type_.quantization is None or axis is None or type_.shape is None:
        return True
    size = type_.shape[axis] if -len(type_.shape) <= axis < len(type_.shape) else 0
    return not isinstance(size, int) or size == len(type_.quantization.scale)


class Tensor(Slot):
    """Required slot for one tensor."""

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Operation, owner: type) -> Operand: ...
    def __get__(self, instance: Operation | None, owner: type) -> Self | Operand:
        return self if instance is None else cast(Operand, instance.inputs[self.index])


class OptionalTensor(Slot):
    """Optional slot for one tensor; reads as `None` if empty."""

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Operation, owner: type) -> Operand | None: ...
    def __get__(self, instance: Operation | None, owner: type) -> Self | Operand | None:
        return self if instance is None else instance.inputs[self.index]


class Tensors(Slot):
    """Variadic slot for one or more tensors; an operator has at most one."""

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
    """Slot for a parameter of the computation; reads as a value of type `T`.

    Attributes:
        default: the value if the slot is empty.
        options: the enumeration of valid values, if it is a choice.
        rank: 0 for one number (stored as a tensor of one element), 1 for a list.
        length: the required length of a list; `None` for any length.
        axis_length: the required number of elements per spatial axis; 0 if unrelated to axes.
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
        # Encoding rounds a real to float32, as it would be stored in a model.
        self._default = default if default is None else decode(self.encode(default))
        self.options = options
        self.rank = rank
        self.length = length

    def set_spatial_rank(self, rank: int) -> None:
        """Set the length, and repeat the default, for images with this number of axes."""
        self.length = rank * self.axis_length
        if isinstance(self.default, tuple):
            self.default = cast(T, self.default * self.length)
            self._default = self.decode(self.encode(self.default))

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: Operation, owner: type) -> T: ...
    def __get__(self, instance: Operation | None, owner: type) -> Self | T:
        if instance is None:
            return self
        operand = instance.inputs[self.index]
        if operand is None:
            return cast(T, self._default)
        if operand.value is None:
            raise ComputedParameter(self)
        return self.decode(operand.value)

    def is_default(self, operand: Operand) -> bool:
        """Return whether an operand is a constant equal to the default."""
        array, value = operand.value, self._default
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
        """Return the name of the choice or element type that a constant represents, if any."""
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
    """Declare a tensor of one of the element types; `like` names a slot with the same type."""
    return Tensor(types, False, like)


def optional_tensor(types: Collection[ElementType], like: str | None = None) -> OptionalTensor:
    """Declare an optional tensor."""
    return OptionalTensor(types, True, like)


def tensors(types: Collection[ElementType]) -> Tensors:
    """Declare one or more tensors of one element type."""
    return Tensors(types, False)


def real(default: float | None = None, *, least: float = -np.inf) -> Parameter[float]:
    """Declare a real number; required if there is no default.

    Args:
        default: the value if the slot is empty.
        least: the smallest valid value; if finite, NaN is invalid, too.
    """

    def decode(array: Array) -> float:
        number = float(array.item())
        if least > -np.inf and not number >= least:
            raise ValueError(f"{number:g} is not at least {least:g}")
        return number

    return Parameter(FLOATS, decode, default, kind="real number", optional=default is not None)


def integer(default: int | None = None) -> Parameter[int]:
    """Declare an integer; required if there is no default."""
    return Parameter(
        INDICES, lambda a: int(a.item()), default, kind="integer", optional=default is not None
    )


def flag(default: bool | None = None) -> Parameter[bool]:
    """Declare a boolean; required if there is no default."""
    return Parameter(
        BOOLEANS, lambda a: bool(a.item()), default, kind="flag", optional=default is not None
    )


def choice(options: type[E], default: E | None = None) -> Parameter[E]:
    """Declare a member of an enumeration, stored as its number."""
    return Parameter(
        INDICES,
        lambda a: options(int(a.item())),
        default,
        kind="choice",
        optional=default is not None,
        options=options,
    )


def element_type(default: ElementType | None = None) -> Parameter[ElementType]:
    """Declare an element type, stored as its code."""
    return Parameter(
        INDICES,
        lambda a: ElementType.from_code(int(a.item())),
        default,
        kind=ELEMENT_TYPE,
        optional=default is not None,
    )


def index_type(default: ElementType) -> Parameter[ElementType]:
    """Declare the element type of indices or sizes: int32 or int64, stored as its code."""

    def decode(array: Array) -> ElementType:
        element_type = ElementType.from_code(int(array.item()))
        if element_type not in INDICES:
            raise ValueError(f"{element_type} is neither int32 nor int64")
        return element_type

    return Parameter(INDICES, decode, default, kind=ELEMENT_TYPE, optional=True)


def integers(
    default: tuple[int, ...] | None = None, length: int | None = None
) -> Parameter[tuple[int, ...]]:
    """Declare a list of integers; required if there is no default."""
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
    """Declare `axis_length` integers per spatial axis, equal by default; see `SpatialOperator`."""
    slot = integers(None if default is None else (default,))
    slot.axis_length = axis_length
    return slot


def optional_axis_integers() -> Parameter[tuple[int, ...] | None]:
    """Declare an optional integer per spatial axis; reads as `None` if empty."""
    slot = optional_integers()
    slot.axis_length = 1
    return slot


def optional_integer() -> Parameter[int | None]:
    """Declare an optional integer; reads as `None` if empty."""
    return Parameter(INDICES, lambda a: int(a.item()), None, kind="integer", optional=True)


def optional_integers(length: int | None = None) -> Parameter[tuple[int, ...] | None]:
    """Declare an optional list of integers; reads as `None` if empty."""

    def decode(array: Array) -> tuple[int, ...] | None:
        return tuple(array.ravel().tolist())

    return Parameter(
        INDICES, decode, None, kind="list of integers", optional=True, rank=1, length=length
    )


def optional_reals(length: int | None = None) -> Parameter[tuple[float, ...] | None]:
    """Declare an optional list of real numbers; reads as `None` if empty."""

    def decode(array: Array) -> tuple[float, ...] | None:
        return tuple(array.ravel().tolist())

    return Parameter(
        FLOATS, decode, None, kind="list of real numbers", optional=True, rank=1, length=length
    )


def reals(default: tuple[float, ...] | None = None) -> Parameter[tuple[float, ...]]:
    """Declare a list of real numbers; required if there is no default."""
    return Parameter(
        FLOATS,
        lambda a: tuple(a.ravel().tolist()),
        default,
        kind="list of real numbers",
        optional=default is not None,
        rank=1,
    )


class Fuse(IntEnum):
    """Activation fused to an operation's result (NNAdapterFuseCode).

    A device may keep NaN or replace it by one of the bounds.
    """

    NONE = 0
    RELU = 1
    RELU1 = 2
    RELU6 = 3

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the interval that the result is clipped to."""
        return _FUSE_BOUNDS[self]


_FUSE_BOUNDS: dict[Fuse, tuple[float, float]] = {
    Fuse.NONE: (-np.inf, np.inf),
    Fuse.RELU: (0.0, np.inf),
    Fuse.RELU1: (-1.0, 1.0),
    Fuse.RELU6: (0.0, 6.0),
}


def fuse() -> Parameter[Fuse]:
    """Declare the fused activation, by default none; operators name the slot `fuse_code`."""
    return choice(Fuse, Fuse.NONE)
