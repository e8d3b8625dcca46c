"""The class of all operators: one declaration, from which everything else is derived.

An operator is a subclass of `Operator` with a name, slots, a docstring that says what it computes,
shape inference and a NumPy reference:

    @operator("LEAKY_RELU")
    class LeakyRelu(Elementwise):
        '''`output = input` where `input >= 0`, else `alpha * input`.'''

        input = tensor(FLOATS)
        alpha = real(0.01)

        def reference(self, input: Array) -> Array:
            return np.where(input >= 0, input, self.alpha * input)

Binding of arguments, validation and its messages, execution and documentation follow from it.
Examples of it are in `crosschip.ops.examples`, its names elsewhere in `crosschip.mapping.standard`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import ClassVar, cast

import numpy as np

from crosschip.ir import (
    Array,
    Builder,
    Dim,
    ElementType,
    ElementTypeError,
    ModelError,
    Operand,
    Operation,
    Quantization,
    Shape,
    TensorType,
    constant,
)
from crosschip.ir.types import BOOLEANS, FLOATS, INDICES, MAX_RANK
from crosschip.ops.definition.kernel import Kernel, kernel_of
from crosschip.ops.definition.quantized import check_zero_point
from crosschip.ops.definition.registry import operator_named
from crosschip.ops.definition.slots import ComputedParameter, Fuse, Parameter, Slot, Tensors


class UnknownRank(Exception):
    """Shape inference met an operand of which not even the rank is known."""


class Operator(Operation):
    """A standard operator; an instance is one use of it in a model.

    Attributes:
        slots: its slots, in order.
        core: whether it is one of the few that all others can be decomposed into.
        moves: whether it only moves elements, so that its output keeps a quantization.
        data_dependent: whether a size of its outputs shows in a run only, whatever is known before.
        shape_slots: the parameters that say nothing but what shape the output has.
        unenforced: the slots whose rules a device need not enforce when the operation runs; what
            breaks any other rule, it must refuse.
    """

    __slots__ = ()

    core: ClassVar[bool] = False
    moves: ClassVar[bool] = False
    data_dependent: ClassVar[bool] = False
    shape_slots: ClassVar[frozenset[str]] = frozenset()
    unenforced: ClassVar[frozenset[str]] = frozenset()
    slots: ClassVar[tuple[Slot, ...]] = ()
    variadic: ClassVar[Tensors | None] = None
    _places: ClassVar[Mapping[str, int]] = {}
    _required: ClassVar[Sequence[Slot]] = ()
    _alike: ClassVar[bool] = False
    reference: Callable[..., Array | Sequence[Array]]

    def __init_subclass__(cls) -> None:
        slots = {
            name: slot
            for base in reversed(cls.__mro__)
            if base is not Operator and issubclass(base, Operator)  # others have no slots
            for name, slot in vars(base).items()
            if isinstance(slot, Slot) and slot.name == name  # and not `variadic`
        }
        for name in slots.keys() - vars(cls).keys():
            # Where it is in the inputs differs between the classes that inherit it.
            slots[name] = copy(slots[name])
            setattr(cls, name, slots[name])
        cls.slots = tuple(slots.values())
        cls._places = {name: place for place, name in enumerate(slots)}
        cls._required = [slot for slot in cls.slots if not slot.optional]
        cls._alike = any(slot.like or slot.variadic for slot in cls.slots)
        cls.variadic = next((s for s in cls.slots if isinstance(s, Tensors)), None)
        _number(cls.slots)

    @classmethod
    def bind(
        cls, name: str, arguments: Sequence[object], named: Mapping[str, object]
    ) -> tuple[Operand | None, ...]:
        """Fill the slots, in order, with operands; plain values become constants.

        A parameter that is given its default is left out, so that a model has one form.

        Raises:
            ModelError: a slot is unknown, filled twice, or required and left out.
        """
        inputs: list[Operand | None] = []
        for slot, value in zip(cls.slots, cls._slot_values(arguments, named), strict=True):
            if slot.variadic:
                inputs.extend(cls._parts(slot, value))
                continue
            if value is None:
                inputs.append(None)
                continue
            operand: Operand | None
            if isinstance(value, Operand):
                operand = value
            elif isinstance(slot, Parameter) and value is slot.default:
                operand = None
            else:
                try:
                    operand = _constant(f"{name}.{slot.name}", slot, value, inputs)
                except (ValueError, TypeError) as error:
                    raise ModelError(f"{cls.type}.{slot.name}: {error}") from None
            if operand is not None and isinstance(slot, Parameter) and slot.is_default(operand):
                operand = None
            inputs.append(operand)
        return tuple(inputs)

    @classmethod
    def _slot_values(cls, arguments: Sequence[object], named: Mapping[str, object]) -> list[object]:
        """The argument for each slot; `None` where there is none."""
        left = len(cls.slots) - len(arguments)
        if left < 0:
            raise ModelError(f"{cls.type}: takes {len(cls.slots)} arguments, not {len(arguments)}")
        values = [*arguments, *(None,) * left]
        for slot_name, value in named.items():
            place = cls._places.get(slot_name)
            if place is None:
                known = ", ".join(cls._places)
                raise ModelError(f"{cls.type}.{slot_name}: no such slot; there are {known}")
            if place < len(arguments):
                raise ModelError(f"{cls.type}.{slot_name}: is given twice")
            values[place] = value
        return values

    @classmethod
    def _parts(cls, slot: Slot, value: object) -> Sequence[Operand]:
        """The operands for a slot that takes many."""
        parts = () if value is None else value
        if not isinstance(parts, Sequence) or any(not isinstance(p, Operand) for p in parts):
            raise ModelError(f"{cls.type}.{slot.name}: takes a list of operands, not {value!r}")
        return parts

    def named_inputs(self) -> Iterator[tuple[str, Operand]]:
        for slot, operand in self.filled():
            yield slot.name, operand

    def symbol(self, slot: str, operand: Operand) -> str | None:
        declared = getattr(type(self), slot)
        return declared.symbol(operand) if isinstance(declared, Parameter) else None

    def infer(self) -> tuple[TensorType, ...]:
        self.validate()
        try:
            shapes = self._shapes()
            element_types = self._element_types(len(shapes))
        except ValueError as error:
            raise ModelError(f"{self.type}.{error}") from None
        except ComputedParameter as error:
            raise ModelError(f"{self.type}.{error}, but must be constant") from None
        types = tuple(map(self._plain_type, element_types, shapes))
        return self._with_shape_value(self.storage(types))

    def validate(self) -> None:
        """Check every operand against its slot.

        Raises:
            ModelError: the message names the operator, the slot and the rule.
        """
        for slot in self._required:
            if not self._is_filled(slot):
                raise ModelError(f"{self.type}.{slot.name}: is required")
        filled = self.filled()
        try:
            for slot, operand in filled:
                slot.accept(operand)
            if self._alike:
                _check_alike(filled)
        except ModelError as error:
            raise type(error)(f"{self.type}.{error}") from None

    def infer_shape(self) -> Shape | Sequence[Shape | None]:
        """The shape of the output, or a list with the shape of each output.

        Raises:
            ValueError: the inputs break a rule; the message starts with the slot.
            ComputedParameter, UnknownRank: the shape depends on what is not known yet.
        """
        raise NotImplementedError(f"{self.type} does not infer its shape")

    def infer_element_type(self) -> ElementType | Sequence[ElementType]:
        """The element type of all outputs, or of each; that of the first input unless said."""
        slot, operand = self.filled()[0]
        return slot.element_type(operand)

    def infer_shape_value(self) -> Sequence[Dim] | None:
        """The elements of the output, if they follow from the inputs' types.

        Raises:
            ValueError, ComputedParameter, UnknownRank: they do not.
        """
        return None

    def output_count(self) -> int:
        """The number of outputs, where that does not need the shapes to be known."""
        return 1

    @classmethod
    def drawn_examples(cls) -> Sequence[Mapping[str, object]]:
        """Uses of it that are made up, where nobody has written examples: arguments by slot."""
        return ()

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        """The axis of every output along which its rows run, where rows are independent.

        They are if each row of an output follows from the rows at the same place of those inputs
        that have rows, and from the other inputs: whatever other rows there are, and how many. To
        say so of what is not is a defect: inputs are padded by it. To leave it unsaid costs speed.

        Args:
            axes: for each input the axis along which its rows run; `None` if it has none, but
                counts whole for each row. One has rows at least; all have as many.

        Returns:
            The axis; `None` if rows are mixed, or nobody has declared that they are not.
        """
        return None

    def decompose(self, b: Builder) -> Operand | Sequence[Operand] | None:
        """Build the same computation from simpler operators.

        Returns:
            The operands that take the place of the outputs; `None` if there is no such way.
        """
        return None

    def check_rules(self) -> None:
        """Check what a decomposition relies on: that the inputs break no rule of the operator.

        Raises:
            ComputedParameter: that shows only when it runs, so that it cannot be decomposed.
        """
        try:
            self.infer_shape()
        except UnknownRank:
            return

    def decomposition(self, b: Builder) -> tuple[Operand, ...] | None:
        """Like `decompose`, with what is quantized and a fused activation split off first."""
        if self.quantized_inputs():
            return (self._decomposed(b) if self.moves_integers else None) or self._on_reals(b)
        if self.fused is not Fuse.NONE:
            plain = self._without_fuse(b)
            b.append(plain)
            low, high = self.fused.bounds
            first, *others = plain.outputs
            return (b.add(operator_named("CLIP"), first, low, high), *others)
        return self._decomposed(b)

    def _decomposed(self, b: Builder) -> tuple[Operand, ...] | None:
        try:
            self.check_rules()
            result = self.decompose(b)
        except (UnknownRank, ComputedParameter):
            return None
        if result is None:
            return None
        return (result,) if isinstance(result, Operand) else tuple(result)

    @property
    def fused(self) -> Fuse:
        """The activation of the first output; `NONE` for most operators."""
        return cast(Fuse, getattr(self, "fuse_code", Fuse.NONE))

    def operand(self, slot: str) -> Operand | None:
        """The operand that fills a slot; `None` where it is left out."""
        return next((o for s, o in self.filled() if s.name == slot), None)

    def kernel(self) -> Kernel:
        """The reference computation, with every constant parameter decoded beforehand."""
        return kernel_of(self)

    def quantized_inputs(self) -> Sequence[Operand]:
        """The operands of which it reads the reals that they stand for."""
        return [
            operand
            for slot, operand in self.filled()
            if operand.type.quantization is not None and slot.reads_reals(operand)
        ]

    def moved_quantization(self) -> Quantization | None:
        """The quantization that elements keep when they are moved, if there is one for all."""
        quantizations = {
            operand.type.quantization for slot, operand in self.filled() if slot.takes_reals
        }
        common = quantizations.pop() if len(quantizations) == 1 else None
        return common if common and common.axis is None else None

    @property
    def moves_integers(self) -> bool:
        """True if it may move the integers of quantized tensors without knowing what they mean."""
        moved = self.moved_quantization() if self.moves else None
        reals = [o.type for o in self.outputs if o.type.quantization or _is_float32(o)]
        return moved is not None and all(type_.quantization == moved for type_ in reals)

    def storage(self, plain: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """The outputs' types: reals as integers where a quantization is declared or kept.

        Raises:
            ModelError: a quantization is declared, but no input has one, or they are too many.
        """
        sources, declared = self.quantized_inputs(), self.output_quantization
        if not sources:
            if any(declared):
                raise ModelError(f"{self.type}: declares a quantization, but no input has one")
            return plain
        if len(declared) not in (0, 1, len(plain)):
            raise ModelError(
                f"{self.type}: declares {len(declared)} quantizations for {len(plain)} outputs"
            )
        inherited = self.moved_quantization() if self.moves else None
        each = declared if len(declared) == len(plain) else (declared or (None,)) * len(plain)
        integer = sources[0].type.element_type
        for quantization in declared:
            check_zero_point(f"{self.type}: of its output, ", quantization, integer)
        return tuple(
            TensorType(integer, type_.shape, quantization or inherited)
            if type_.element_type is ElementType.FLOAT32 and (quantization or inherited)
            else type_
            for type_, quantization in zip(plain, each, strict=True)
        )

    def _on_reals(self, b: Builder) -> tuple[Operand, ...]:
        """The operation between what makes reals of its inputs and integers of its outputs."""
        dequantize, quantize = operator_named("DEQUANTIZE"), operator_named("QUANTIZE")
        sources = self.quantized_inputs()
        inputs = tuple(b.add(dequantize, o) if o in sources else o for o in self.inputs)
        plain = type(self)(b.unique_name(self.type.lower()), inputs)
        reals = tuple(
            Operand(f"{output.name}.real", type_)
            for output, type_ in zip(self.outputs, plain.infer(), strict=True)
        )
        b.append(plain.with_outputs(reals))
        results = []
        for real, output in zip(reals, self.outputs, strict=True):
            stored = output.type.quantization
            if stored is not None and real.type.quantization is None:
                axis, dtype = stored.axis or 0, output.type.element_type
                real = b.add(quantize, real, axis, stored.scale, stored.zero_point, dtype)
            results.append(real)
        return tuple(results)

    def _without_fuse(self, b: Builder) -> Operator:
        slot = next(slot for slot in self.slots if slot.name == "fuse_code")
        inputs = list(self.inputs)
        inputs[slot.index] = None
        outputs = tuple(Operand(f"{o.name}.unfused", o.type) for o in self.outputs)
        return type(self)(b.unique_name(self.type.lower()), tuple(inputs), outputs)

    def _operands(self, slot: Slot) -> Sequence[Operand]:
        if isinstance(slot, Tensors):
            return slot.__get__(self, type(self))
        operand = self.inputs[slot.index]
        return () if operand is None else (operand,)

    def _is_filled(self, slot: Slot) -> bool:
        return bool(self._operands(slot)) if slot.variadic else self.inputs[slot.index] is not None

    def filled(self) -> Sequence[tuple[Slot, Operand]]:
        """Each operand that is present, with the slot it fills."""
        if self.variadic is None:
            pairs = zip(self.slots, self.inputs, strict=False)
            return [(slot, operand) for slot, operand in pairs if operand is not None]
        return [(slot, operand) for slot in self.slots for operand in self._operands(slot)]

    def _first(self) -> Operand:
        return self.filled()[0][1]

    def _with_shape_value(self, types: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        first = types[0]
        if first.element_type not in INDICES | BOOLEANS:
            return types
        shape = first.static_shape
        if shape is None or math.prod(shape) > MAX_RANK:
            return types
        try:
            value = self.infer_shape_value()
        except (UnknownRank, ComputedParameter, ValueError):
            return types
        if value is None or len(value) != math.prod(shape):
            return types
        return (replace(first, shape_value=tuple(value)), *types[1:])

    def _plain_type(self, element_type: ElementType, shape: Shape | None) -> TensorType:
        """The type of reals; that of the first input where it is the same one, not one like it."""
        first = self.inputs[0].type if self.inputs and self.inputs[0] is not None else None
        if (
            first is not None
            and first.shape is shape
            and first.element_type is element_type
            and first.quantization is None
            and first.shape_value is None
        ):
            return first
        return TensorType(element_type, shape)

    def _shapes(self) -> Sequence[Shape | None]:
        try:
            shape = self.infer_shape()
        except (UnknownRank, ComputedParameter):
            return (None,) * self.output_count()
        return shape if isinstance(shape, list) else [cast(Shape, shape)]

    def _element_types(self, count: int) -> Sequence[ElementType]:
        element_type = self.infer_element_type()
        return [element_type] * count if isinstance(element_type, ElementType) else element_type


def shape_of(operand: Operand) -> Shape:
    """The shape of an operand; `UnknownRank` where not even the rank is known."""
    if operand.type.shape is None:
        raise UnknownRank
    return operand.type.shape


def _is_float32(operand: Operand) -> bool:
    return operand.type.element_type is ElementType.FLOAT32


def shape_value_of(operand: Operand) -> tuple[Dim, ...]:
    """The elements of a small tensor of integers, constant or followed from shapes.

    Raises:
        UnknownRank: they are not known so.
    """
    if operand.content is not None and math.prod(operand.content.shape) <= MAX_RANK:
        return tuple(np.asarray(operand.value).ravel().tolist())
    if operand.type.shape_value is None:
        raise UnknownRank
    return operand.type.shape_value


def _number(slots: Sequence[Slot]) -> None:
    """Give each slot its place in `Operation.inputs`, counted from the end after a variadic one."""
    after_variadic = False
    for index, slot in enumerate(slots):
        slot.index = index - len(slots) if after_variadic else index
        if isinstance(slot, Tensors):
            slot.after = len(slots) - 1 - index
            after_variadic = True


def _check_alike(filled: Sequence[tuple[Slot, Operand]]) -> None:
    """`ElementTypeError` where a slot does not share the element type of the one it is like."""
    first: dict[str, ElementType] = {}
    for slot, operand in filled:
        element_type = slot.element_type(operand)
        expected = first.setdefault(slot.like or slot.name, element_type)
        if element_type is not expected and (slot.like or slot.variadic):
            raise ElementTypeError(
                f"{slot.name}: is {element_type}, but must be "
                f"{expected} like {slot.like or 'the first of them'}"
            )


def _constant(name: str, slot: Slot, value: object, before: Sequence[Operand | None]) -> Operand:
    array = slot.encode(value)
    if not slot.parameter and not isinstance(value, np.ndarray | np.generic):
        array = _like(array, before)
    return constant(array, name)


def _like(plain: Array, before: Sequence[Operand | None]) -> Array:
    """Plain numbers as the element type of the first operand; `ValueError` if they do not fit."""
    first = next((operand for operand in before if operand is not None), None)
    if first is None:
        raise ValueError("a plain value has no operand before it to be like; pass an operand")
    element_type = first.type.element_type
    array = plain.astype(element_type.dtype)
    if element_type not in FLOATS and not np.array_equal(array, plain):
        raise ValueError(f"{plain.tolist()} is not of the element type {element_type}")
    return array
