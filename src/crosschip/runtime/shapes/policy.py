"""Choose who compiles open sizes: the device, or the runtime for each set of input shapes."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from crosschip.hal import Capabilities, Sizes, Sizing
from crosschip.ir import Dimension, ElementType, Model, TensorType
from crosschip.lowering.static_shapes import is_data_dependent
from crosschip.ops import Operator
from crosschip.runtime.shapes.strategy import DynamicShapeStrategy


def strategy_for(
    capabilities: Capabilities, model: Model, segment: Model, sizes: Sizes
) -> DynamicShapeStrategy:
    """The treatment of the open sizes of a segment.

    Args:
        capabilities: those of its device.
        model: the model that it is a part of, as the device was asked about it.
        segment: the part.
        sizes: what the caller knows of open sizes.
    """
    if not is_open(segment):
        return DynamicShapeStrategy.FIXED
    if capabilities.data_dependent_sizes and _opens_sizes(segment):
        return DynamicShapeStrategy.FIXED
    fixed = is_fixed_for(capabilities, model, sizes)
    return DynamicShapeStrategy.PROGRAM_PER_SHAPE if fixed else DynamicShapeStrategy.OPEN


def is_fixed_for(capabilities: Capabilities, model: Model, sizes: Sizes) -> bool:
    """Tell whether a device gets a model, or parts of it, with all sizes fixed.

    Args:
        capabilities: the device's.
        model: what it is asked about.
        sizes: what the caller knows of open sizes.
    """
    if capabilities.sizing is Sizing.FIXED or _has_open_axis(model, capabilities.open_axes):
        return is_open(model)
    if capabilities.sizing is Sizing.FREE:
        return not capabilities.open_ranks and _ranks_follow_from_sizes(model)
    return any(
        isinstance(size, Dimension) and not size.names <= sizes.bounded
        for type_ in _types(model)
        for size in type_.shape or ()
    )


def _has_open_axis(model: Model, allowed: Collection[int] | None) -> bool:
    """Tell whether a size is open on another axis than those that are allowed."""
    return allowed is not None and any(
        isinstance(size, Dimension)
        for type_ in _types(model)
        for axis, size in enumerate(type_.shape or ())
        if axis not in allowed
    )


def is_open(model: Model) -> bool:
    """Tell whether some size, or number of axes, is not known before a run."""
    return any(type_.static_shape is None for type_ in _types(model))


def _ranks_follow_from_sizes(model: Model) -> bool:
    """Tell whether there are numbers of axes that are not known, but would be if all sizes were."""
    opening = [
        operation
        for operation in model.operations
        if any(output.type.shape is None for output in operation.outputs)
        and all(operand is None or operand.type.shape is not None for operand in operation.inputs)
    ]
    known = all(operand.type.shape is not None for operand in model.inputs.values())
    return (
        bool(opening)
        and known
        and all(isinstance(operation, Operator) for operation in opening)
        and not any(map(is_data_dependent, model.operations))
    )


def _opens_sizes(segment: Model) -> bool:
    """Tell whether all sizes are known but those that depend on data."""
    return all(map(is_data_dependent, segment.operations)) and not any(
        operand.type.static_shape is None for operand in segment.inputs.values()
    )


def _types(model: Model) -> Iterator[TensorType]:
    """The types of the tensors of a model; what is no tensor has no sizes."""
    for operands in (model.inputs.values(), *(o.outputs for o in model.operations)):
        for operand in operands:
            if operand.type.element_type is not ElementType.OBJECT:
                yield operand.type
