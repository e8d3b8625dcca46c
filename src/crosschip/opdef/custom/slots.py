"""Slots of operators derived from the tensors of a definition."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum, IntEnum
from keyword import iskeyword
from typing import Any, cast
from unicodedata import normalize

import numpy as np

from crosschip.ir import Array, ElementType, ElementTypeError, InputError, ModelError, Operand
from crosschip.ir.types import FLOATS
from crosschip.opdef.datatypes import Datatype
from crosschip.opdef.defaults import Value, parse_default
from crosschip.opdef.definitions import Input, OpDef, OpDefCollection, Parameter, Rank, Tensor
from crosschip.ops.definition import slots

Stored = tuple[ElementType, bool]
"""An element type, and whether its elements are quantized."""


def slots_of(
    collection: OpDefCollection, op_def: OpDef, reserved: Collection[str]
) -> dict[str, slots.Slot]:
    """Return an operator's slots by tensor name: the inputs, then the parameters.

    A slot has the tensor's name without brackets (`in[0]` becomes `in0`), and with an appended `_`
    if the name is reserved.

    Args:
        collection: the document.
        op_def: the operator.
        reserved: names that slots must not have.

    Raises:
        InputError: the definition cannot be expressed by slots.
    """
    repeated = [tensor.name for tensor in op_def.inputs if tensor.repeated]
    if len(repeated) > 1:
        names_text = " and ".join(map(repr, repeated))
        raise InputError(f"{op_def.name}: {names_text} are repeated; one input can be")
    by_name: dict[str, slots.Slot] = {}
    names = {*reserved, "self"}
    tensors: tuple[Input | Parameter, ...] = (*op_def.inputs, *op_def.parameters)
    for tensor in tensors:
        stored = stored_types(collection, op_def, tensor)
        try:
            slot = _input(tensor, stored) if isinstance(tensor, Input) else Setting(tensor, stored)
        except ValueError as error:
            raise InputError(f"{op_def.name}.{tensor.name}: {error}") from None
        slot.name = _slot_name(tensor.name, names)
        names.add(slot.name)
        by_name[tensor.name] = slot
    return by_name


def _slot_name(tensor: str, reserved: Collection[str]) -> str:
    # Python normalizes identifiers to NFKC.
    letters = normalize("NFKC", tensor)
    name = "".join(letter for letter in letters if f"_{letter}".isidentifier())
    name = name if name.isidentifier() else f"_{name}"
    while iskeyword(name) or name in reserved:
        name += "_"
    return name


def datatypes_of(
    collection: OpDefCollection, op_def: OpDef, tensor: Tensor
) -> tuple[Datatype, ...]:
    """Return a tensor's datatypes; for BACKEND_SPECIFIC, those of all backends."""
    if Datatype.BACKEND_SPECIFIC not in tensor.datatypes:
        return tensor.datatypes
    return tuple(
        dict.fromkeys(
            datatype
            for supplement in collection.supplements
            for supplemental in supplement.op_defs
            if supplemental.name == op_def.name
            for entry in supplemental.tensors
            if entry.name == tensor.name
            for datatype in entry.datatypes
        )
    )


def stored_types(collection: OpDefCollection, op_def: OpDef, tensor: Tensor) -> frozenset[Stored]:
    """Return the element types of a tensor's datatypes."""
    return frozenset(
        (datatype.element_type, datatype.quantized)
        for datatype in datatypes_of(collection, op_def, tensor)
        if datatype.element_type is not None
    )


def describe_types(stored: Collection[Stored]) -> str:
    """Format element types for messages."""
    return ", ".join(sorted(f"quantized {t}" if q else str(t) for t, q in stored))


def stored_of(operand: Operand) -> Stored:
    """Return an operand's element type, and whether it is quantized."""
    return operand.type.element_type, operand.type.quantization is not None


class DefinedSlot(slots.Slot):
    """Input slot with the datatypes of a definition.

    Attributes:
        tensor: the definition.
        stored: the permitted element types.
    """

    tensor: Input
    stored: frozenset[Stored]

    def define(self, tensor: Input, stored: frozenset[Stored]) -> None:
        """Set the attributes from a definition."""
        self.tensor = tensor
        self.stored = stored
        self.takes_reals = any(quantized for _, quantized in stored)

    def accept(self, operand: Operand) -> None:
        if stored_of(operand) not in self.stored:
            actual = describe_types([stored_of(operand)])
            raise ElementTypeError(
                f"{self.name}: takes {describe_types(self.stored)}, not {actual}"
            )
        super().accept(operand)
        check_rank(self.name, self.tensor, operand)
        if self.tensor.static and not operand.is_constant:
            raise ModelError(f"{self.name}: is a static tensor, so it must be constant")


def check_rank(name: str, tensor: Tensor, operand: Operand) -> None:
    """Raise a `ModelError` if an operand's rank differs from the definition."""
    rank, shape = tensor.shape.rank, operand.type.shape
    if shape is not None and rank.axes not in (None, len(shape)):
        raise ModelError(f"{name}: has {len(shape)} axes, but its rank is {rank.value}")


class RequiredInput(DefinedSlot, slots.Tensor):
    """Required input."""


class OptionalInput(DefinedSlot, slots.OptionalTensor):
    """Optional input, possibly with a default."""


class RepeatedInput(DefinedSlot, slots.Tensors):
    """Repeated input."""


def _input(tensor: Input, stored: frozenset[Stored]) -> slots.Slot:
    types = {element_type for element_type, _ in stored}
    slot: DefinedSlot
    if tensor.repeated:
        slot = RepeatedInput(types, optional=not tensor.mandatory)
    elif tensor.mandatory:
        slot = RequiredInput(types, optional=False)
    else:
        slot = OptionalInput(types, optional=True)
    slot.define(tensor, stored)
    return slot


class Setting(slots.Parameter[Any]):
    """Parameter: a number, a list of numbers, an array, or a name of an enumeration.

    Attributes:
        tensor: the definition.
    """

    def __init__(self, tensor: Parameter, stored: Collection[Stored]) -> None:
        self.tensor = tensor
        # Parameters hold real values even where the document declares a quantized datatype.
        types = {ElementType.FLOAT32 if quantized else t for t, quantized in stored}
        declared = [d.element_type for d in tensor.datatypes if d.element_type in types]
        self._ordered = [t for t in declared if t is not None] or sorted(types, key=str)
        options = _options(tensor)
        rank = tensor.shape.rank
        super().__init__(
            types,
            self._decoder(options),
            self._default(options),
            kind=_kind(tensor, types),
            optional=not tensor.mandatory or tensor.default is not None,
            options=options,
            rank={Rank.SCALAR: 0, Rank.ONE: 1}.get(rank, 2),
        )

    def accept(self, operand: Operand) -> None:
        super().accept(operand)
        if self.rank > 1:
            check_rank(self.name, self.tensor, operand)

    def encode(self, value: object) -> Array:
        """Return a value as an array of the first datatype that can hold it.

        Raises:
            ValueError: no datatype holds the value, or the enumeration lacks the name.
        """
        if isinstance(value, str):
            value = self._number(value)
        source = np.asarray(value)
        dtypes = [element_type.dtype for element_type in self._ordered]
        if isinstance(value, np.ndarray | np.generic) and source.dtype in dtypes:
            return source
        for element_type in self._ordered:
            with np.errstate(all="ignore"):
                array = source.astype(element_type.dtype)
            if _is_preserved(array, source, element_type):
                return array
        raise ValueError(
            f"{value!r} is not of {describe_types([(t, False) for t in self._ordered])}"
        )

    def _number(self, name: str) -> int:
        names = [option.name for option in self.options or ()]
        if name not in names:
            expected = f"one of {', '.join(names)}" if names else "a number"
            raise ValueError(f"{name!r} is not {expected}")
        return names.index(name)

    def _decoder(self, options: type[Enum] | None) -> Any:
        rank = self.tensor.shape.rank
        if options is not None and rank is Rank.SCALAR:
            return lambda array: options(int(array.item()))
        if rank is Rank.SCALAR:
            return lambda array: array.item()
        if rank is Rank.ONE:
            return lambda array: tuple(array.ravel().tolist())
        return lambda array: array

    def _default(self, options: type[Enum] | None) -> Any:
        text = self.tensor.default
        value = None if text is None else parse_default(text)
        if value is None or (isinstance(value, str) and options is None):
            return None  # omitted, or a formula, which only the operator can evaluate
        if options is not None and isinstance(value, str):
            return options[value]
        if self.tensor.shape.rank is Rank.SCALAR or isinstance(value, tuple):
            return np.array(value) if self.tensor.shape.rank.axes not in (0, 1) else value
        return (value,) if self.tensor.shape.rank is Rank.ONE else np.array(value)


def _options(tensor: Parameter) -> type[Enum] | None:
    if tensor.enumeration is None:
        return None
    members = [(name, number) for number, name in enumerate(tensor.enumeration.names)]
    return cast(type[Enum], IntEnum(f"{tensor.name}_names", members))


def _kind(tensor: Parameter, types: Collection[ElementType]) -> str:
    if tensor.enumeration is not None:
        return "choice"
    element = {True: "flag", False: "integer"}[set(types) == {ElementType.BOOL}]
    element = "real number" if set(types) & FLOATS else element
    many = {Rank.SCALAR: element, Rank.ONE: f"list of {element}s"}
    return many.get(tensor.shape.rank, f"array of {element}s")


def _is_preserved(array: Array, source: Array, element_type: ElementType) -> bool:
    """Return whether a conversion to an element type kept the value up to rounding of reals."""
    if source.dtype.kind not in "biuf":
        return False
    if element_type in FLOATS:
        return source.dtype.kind in "iuf"
    if element_type is ElementType.BOOL:
        return bool(np.all((source == 0) | (source == 1)))
    return source.dtype.kind in "iuf" and bool(np.array_equal(array, source))


def default_array(tensor: Input, stored: Collection[Stored]) -> Array | None:
    """Return the default of an input as an array; `None` if there is none."""
    value: Value | None = None if tensor.default is None else parse_default(tensor.default)
    if value is None or isinstance(value, str):
        return None
    plain = [d.element_type for d in tensor.datatypes if (d.element_type, False) in stored]
    if not plain or plain[0] is None:
        return None
    return np.array(value, plain[0].dtype, ndmin=1)
