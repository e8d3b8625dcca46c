"""Base class of operators: one declaration, from which everything else is derived.

An operator is a subclass of `Operator` with a name, slots, a docstring that specifies the
computation, shape inference and a NumPy reference:

    @operator("LEAKY_RELU")
    class LeakyRelu(Elementwise):
        '''`output = input` where `input >= 0`, else `alpha * input`.'''

        input = tensor(FLOATS)
        alpha = real(0.01)

        def reference(self, input: Array) -> Array:
            return np.where(input >= 0, input, self.alpha * input)

Argument binding, validation with messages, execution and documentation follow from the declaration.
Examples are in `crosschip.ops.examples`, names in other operator sets in
`crosschip.mapping.standard`.
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
    """Shape inference needs the shape or value of an operand whose rank or value is unknown."""


class Operator(Operation):
    """Standard operator; an instance is one operation in a model.

    Attributes:
        slots: its slots, in order.
        core: whether it belongs to the core operators, into which all others can be decomposed.
        moves: whether it only moves elements, so that its output keeps the input's quantization.
        data_dependent: whether an output size depends on input elements.
        shape_slots: the parameters that only determine the output's shape.
        unenforced: the slots whose rules devices need not check at run time; they must check all
            other rules.
    """

    __slots__ = ()

    core: ClassVar[bool] = False
    moves: ClassVar[bool] = False
    data_dependent: ClassVar[bool] = False
    shape_slots: ClassVar[frozenset[str]] = frozenset()
    unenforced: ClassVar[frozenset[str]] = frozenset()
    slots: ClassVar[tuple[Slot, ...]] = ()
    variadic: ClassVar[Tensors | None] = None
    _indices: ClassVar[Mapping[str, int]] = {}
    _required: ClassVar[Sequence[Slot]] = ()
    _has_like: ClassVar[bool] = False
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
            # A slot's index in the inputs differs between the classes that inherit it.
            slots[name] = copy(slots[name])
            setattr(cls, name, slots[name])
        cls.slots = tuple(slots.values())
        cls._indices = {name: index for index, name in enumerate(slots)}
        cls._required = [slot for slot in cls.slots if not slot.optional]
        cls._has_like = any(slot.like or slot.variadic for slot in cls.slots)
        cls.variadic = next((s for s in cls.slots if isinstance(s, Tensors)), None)
        _assign_indices(cls.slots)

    @classmethod
    def bind(
        cls, name: str, arguments: Sequence[object], named: Mapping[str, object]
    ) -> tuple[Operand | None, ...]:
        """Return operands for the slots, in order; plain values become constants.

        A parameter with its default value is omitted, so that equal models have equal forms.

        Raises:
            ModelError: a slot is unknown, filled twice, or required and missing.
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
        """Return the argument for each slot; `None` for a missing one."""
        missing = len(cls.slots) - len(arguments)
        if missing < 0:
            raise ModelError(f"{cls.type}: takes {len(cls.slots)} arguments, not {len(arguments)}")
        values = [*arguments, *(None,) * missing]
        for slot_name, value in named.items():
            index = cls._indices.get(slot_name)
            if index is None:
                known = ", ".join(cls._indices)
                raise ModelError(f"{cls.type}.{slot_name}: no such slot; there are {known}")
            if index < len(arguments):
                raise ModelError(f"{cls.type}.{slot_name}: is given twice")
            values[index] = value
        return values

    @classmethod
    def _parts(cls, slot: Slot, value: object) -> Sequence[Operand]:
        """Return the operands of a variadic slot."""
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
        types = tuple(map(self._output_type, element_types, shapes))
        return self._with_shape_value(self.storage(types))

    def validate(self) -> None:
        """Check each operand against its slot.

        Raises:
            ModelError: a rule is broken; the message names the operator, the slot and the rule.
        """
        for slot in self._required:
            if not self._is_filled(slot):
                raise ModelError(f"{self.type}.{slot.name}: is required")
        filled = self.filled()
        try:
            for slot, operand in filled:
                slot.accept(operand)
            if self._has_like:
                _check_like(filled)
        except ModelError as error:
            raise type(error)(f"{self.type}.{error}") from None

    def infer_shape(self) -> Shape | Sequence[Shape | None]:
        """Return the shape of the output, or a list with the shape of each output.

        Raises:
            ValueError: the inputs break a rule; the message starts with the slot.
            ComputedParameter, UnknownRank: the shape depends on unknown values.
        """
        raise NotImplementedError(f"{self.type} does not infer its shape")

    def infer_element_type(self) -> ElementType | Sequence[ElementType]:
        """Return the element type of all outputs, or a list; by default that of the first input."""
        (slot, operand), *_ = self.filled()
        return slot.element_type(operand)

    def infer_shape_value(self) -> Sequence[Dim] | None:
        """Return the elements of the output, if they follow from the input types.

        Raises:
            ValueError, ComputedParameter, UnknownRank: they do not.
        """
        return None

    def output_count(self) -> int:
        """Return the number of outputs, without needing to know shapes."""
        return 1

    @classmethod
    def generated_examples(cls) -> Sequence[Mapping[str, object]]:
        """Return generated examples (arguments by slot), used if none are written."""
        return ()

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        """Return the axis of rows in all outputs, if rows are computed independently.

        Rows are independent if each output row depends only on the same row of the inputs with
        rows, and on the inputs without rows. Callers pad inputs with additional rows if this holds,
        so a wrong axis is an error; `None` only costs speed.

        Args:
            axes: for each input the axis of its rows; `None` if the whole input applies to all
                rows. At least one input has rows, and all have the same number.

        Returns:
            The axis; `None` if rows are mixed or independence is not declared.
        """
        return None

    def decompose(self, b: Builder) -> Operand | Sequence[Operand] | None:
        """Build the same computation from simpler operators.

        Returns:
            The operands that replace the outputs; `None` if there is no decomposition.
        """
        return None

    def check_rules(self) -> None:
        """Check the rules that a decomposition relies on.

        Raises:
            ComputedParameter: a rule can only be checked at run time, so decomposition is
                impossible.
        """
        try:
            self.infer_shape()
        except UnknownRank:
            return

    def decomposition(self, b: Builder) -> tuple[Operand, ...] | None:
        """Like `decompose`, but first split off quantization and a fused activation."""
        if self.quantized_inputs():
            return (
                self._try_decompose(b) if self.moves_integers else None
            ) or self._compute_on_reals(b)
        if self.fused is not Fuse.NONE:
            plain = self._split_fuse(b)
            b.append(plain)
            low, high = self.fused.bounds
            first, *others = plain.outputs
            return (b.add(operator_named("CLIP"), first, low, high), *others)
        return self._try_decompose(b)

    def _try_decompose(self, b: Builder) -> tuple[Operand, ...] | None:
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
        """Return the activation of the first output; `NONE` for most operators."""
        return cast(Fuse, getattr(self, "fuse_code", Fuse.NONE))

    def operand(self, slot: str) -> Operand | None:
        """Return the operand in a slot; `None` if the slot is empty."""
        return next((o for s, o in self.filled() if s.name == slot), None)

    def kernel(self) -> Kernel:
        """Return the reference computation, with all constant parameters decoded."""
        return kernel_of(self)

    def quantized_inputs(self) -> Sequence[Operand]:
        """Return the quantized operands that the operator reads as reals."""
        return [
            operand
            for slot, operand in self.filled()
            if operand.type.quantization is not None and slot.reads_reals(operand)
        ]

    def moved_quantization(self) -> Quantization | None:
        """Return the quantization that moved elements keep, if all inputs share one."""
        quantizations = {
            operand.type.quantization for slot, operand in self.filled() if slot.takes_reals
        }
        common = quantizations.pop() if len(quantizations) == 1 else None
        return common if common and common.axis is None else None

    @property
    def moves_integers(self) -> bool:
        """Return whether the operation may move quantized integers without dequantizing them."""
        moved = self.moved_quantization() if self.moves else None
        types = [output.type for output in self.outputs]
        reals = [t for t in types if t.quantization or t.element_type is ElementType.FLOAT32]
        return moved is not None and all(type_.quantization == moved for type_ in reals)

    def storage(self, plain: tuple[TensorType, ...]) -> tuple[TensorType, ...]:
        """Return the output types, quantized where a quantization is declared or kept.

        Raises:
            ModelError: a quantization is declared but no input has one, or too many are declared.
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

    def _compute_on_reals(self, b: Builder) -> tuple[Operand, ...]:
        """Build the operation between dequantized inputs and quantized outputs."""
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
            quantization = output.type.quantization
            if quantization is not None and real.type.quantization is None:
                axis, dtype = quantization.axis or 0, output.type.element_type
                real = b.add(
                    quantize, real, axis, quantization.scale, quantization.zero_point, dtype
                )
            results.append(real)
        return tuple(results)

    def _split_fuse(self, b: Builder) -> Operator:
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
        """Return each present operand with its slot."""
        if self.variadic is None:
            pairs = zip(self.slots, self.inputs, strict=False)
            return [(slot, operand) for slot, operand in pairs if operand is not None]
        return [(slot, operand) for slot in self.slots for operand in self._operands(slot)]

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

    def _output_type(self, element_type: ElementType, shape: Shape | None) -> TensorType:
        """Return an unquantized type; the first input's type object if it is equal."""
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
    """Return the shape of an operand; raise UnknownRank if its rank is unknown."""
    if operand.type.shape is None:
        raise UnknownRank
    return operand.type.shape


def shape_value_of(operand: Operand) -> tuple[Dim, ...]:
    """Return the elements of a small integer tensor that is constant or derived from shapes.

    Raises:
        UnknownRank: they are unknown.
    """
    if operand.content is not None and math.prod(operand.content.shape) <= MAX_RANK:
        return tuple(np.asarray(operand.value).ravel().tolist())
    if operand.type.shape_value is None:
        raise UnknownRank
    return operand.type.shape_value


def _assign_indices(slots: Sequence[Slot]) -> None:
    """Set each slot's index in `Operation.inputs`, negative after a variadic slot."""
    after_variadic = False
    for index, slot in enumerate(slots):
        slot.index = index - len(slots) if after_variadic else index
        if isinstance(slot, Tensors):
            slot.after = len(slots) - 1 - index
            after_variadic = True


def _check_like(filled: Sequence[tuple[Slot, Operand]]) -> None:
    """Raise ElementTypeError unless slots share element types as their `like` requires."""
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
        array = _cast_like(array, before)
    return constant(array, name)


def _cast_like(plain: Array, before: Sequence[Operand | None]) -> Array:
    """Return numbers in the first operand's element type; raise ValueError if they do not fit."""
    first = next((operand for operand in before if operand is not None), None)
    if first is None:
        raise ValueError("a plain value has no operand before it to be like; pass an operand")
    element_type = first.type.element_type
    array = plain.astype(element_type.dtype)
    if element_type not in FLOATS and not np.array_equal(array, plain):
        raise ValueError(f"{plain.tolist()} is not of the element type {element_type}")
    return array
