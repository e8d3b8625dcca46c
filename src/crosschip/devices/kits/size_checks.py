"""Checks of input sizes for operators whose rules an engine does not check.

Such an engine broadcasts a tensor, reads out of bounds or ends the process if a run's sizes break a
rule, and it may fail on empty tensors. So before a run with new input shapes, the shapes of the
affected operations are inferred.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain

import numpy as np

from crosschip.devices.kits.input_checks import InputRequirements, Needed
from crosschip.devices.kits.size_rules import ALWAYS, fit_of
from crosschip.ir import Array, DeviceError, Dim, Model, ModelError, Operand, Operation, TensorType
from crosschip.ir.shape_binding import named_sizes
from crosschip.ir.size_reader import SizeReader, names_are_proven
from crosschip.ops.definition.operator import Operator

Operators = tuple[type[Operator], ...]

_CACHED_SHAPES = 16
"""The number of sets of input shapes that are cached per model."""


class Sizes:
    """Size checks of the runs of a model.

    Args:
        engine: the engine's name, for errors.
        model: the model, possibly with dynamic dimensions.
        unchecked: the operators whose sizes the engine does not check.
        fails_of_nothing: the operators that the engine does not compute or check on empty inputs.
        unwritten_of_nothing: those of them whose outputs the engine then leaves unwritten.
    """

    def __init__(
        self,
        engine: str,
        model: Model,
        unchecked: Operators,
        fails_of_nothing: Operators,
        unwritten_of_nothing: Operators = (),
    ) -> None:
        self._engine = engine
        self._inputs = [operand.type for operand in model.inputs.values()]
        self._reader = SizeReader(self._inputs)
        self._outputs = [operand.type for operand in model.outputs.values()]
        opened = [o for o in model.operations if any(map(_is_open, o.inputs))]
        self._of_nothing = any(isinstance(o, fails_of_nothing) for o in opened)
        doubted = [o for o in opened if isinstance(o, unchecked) or any(map(_has_scales, o.inputs))]
        proven = names_are_proven(model)
        fits = {o: fit_of(o) if proven else None for o in doubted}
        self._fits = {o: fit for o, fit in fits.items() if fit != ALWAYS}
        self._unchecked = list(self._fits)
        self._all = [o for o in opened if o in self._fits or isinstance(o, fails_of_nothing)]
        self._unwritten = unwritten_of_nothing
        self._cached_output_types = lru_cache(_CACHED_SHAPES)(self._empty_output_types)

    @property
    def checks(self) -> InputRequirements:
        """The conditions under which a run needs no check."""
        if not self._all:
            return InputRequirements(Needed.NEVER)
        if not self._unchecked:
            return InputRequirements(Needed.OF_NOTHING)
        fits = [fit for fit in self._fits.values() if fit is not None]
        equal = dict.fromkeys(chain.from_iterable(fit.equal for fit in fits))
        positive = dict.fromkeys(chain.from_iterable(fit.positive for fit in fits))
        sizes_are_known = all(map(self._reader.knows, chain(positive, *equal)))
        if len(fits) < len(self._fits) or not sizes_are_known:
            return InputRequirements(Needed.ALWAYS)
        return InputRequirements(Needed.UNLESS_FITTING, self._inputs, list(equal), list(positive))

    def check_shapes(self, shapes: Sequence[tuple[int, ...]]) -> list[Array] | None:
        """Check input shapes.

        Returns:
            The outputs, if all of them are empty and the engine may fail; else `None`.

        Raises:
            DeviceError: the sizes break a rule of an operation.
        """
        types = self._cached_output_types(tuple(shapes))
        if types is None:
            return None
        return [np.empty(type_.static_shape or (), type_.element_type.dtype) for type_ in types]

    def _empty_output_types(self, shapes: tuple[tuple[int, ...], ...]) -> list[TensorType] | None:
        """Return the types of the outputs if all are empty and the engine may fail; else `None`."""
        is_empty = any(0 in shape for shape in shapes)
        operations = self._all if is_empty else self._unchecked
        if not operations:
            return None
        sizes = self._reader.read(shapes)
        for operation in operations:
            sized = _with_sizes(operation, sizes)
            try:
                inferred = sized.infer()
            except (ModelError, ValueError) as error:
                rule = str(error).removeprefix(f"{operation.type}.")
                raise DeviceError(
                    f"{self._engine}: {operation.type} {operation.name!r}: {rule}"
                ) from None
            if isinstance(operation, self._unwritten) and _creates_elements(sized, inferred):
                where = f"{self._engine}: {operation.type} {operation.name!r}"
                raise DeviceError(f"{where}: has nothing to make elements of")
            declared = [output.type for output in operation.outputs]
            sizes.update(named_sizes(declared, [type_.shape for type_ in inferred]))
        if not (is_empty and self._of_nothing):
            return None
        outputs = [type_.substitute(sizes) for type_ in self._outputs]
        return outputs if all(0 in (o.static_shape or ()) for o in outputs) else None


def _is_open(operand: Operand | None) -> bool:
    return operand is not None and operand.type.static_shape is None


def _has_scales(operand: Operand | None) -> bool:
    """Return whether an operand is quantized per axis."""
    quantization = None if operand is None else operand.type.quantization
    return quantization is not None and quantization.axis is not None


def _creates_elements(operation: Operation, output_types: Sequence[TensorType]) -> bool:
    """Return whether an input is empty and an output may not be."""
    read = (o.type.shape for o in operation.inputs if o is not None)
    return any(0 in (shape or ()) for shape in read) and any(
        0 not in (t.shape or ()) for t in output_types
    )


def _with_sizes(operation: Operation, sizes: dict[str, Dim]) -> Operation:
    """Return the operation on operands with these sizes."""
    return operation.with_inputs(
        tuple(
            operand
            if operand is None or operand.is_constant
            else Operand(operand.name, operand.type.substitute(sizes))
            for operand in operation.inputs
        )
    )
