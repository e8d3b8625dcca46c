"""The choice of the dynamic shape strategy of a segment."""

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
    """Return the dynamic shape strategy of a segment.

    Args:
        capabilities: the capabilities of its device.
        model: the model of the query to the device.
        segment: the segment of that model.
        sizes: the caller's knowledge of dynamic sizes.
    """
    if not is_open(segment):
        return DynamicShapeStrategy.FIXED
    if capabilities.data_dependent_sizes and _has_data_dependent_sizes(segment):
        return DynamicShapeStrategy.FIXED
    fixed = is_fixed_for(capabilities, model, sizes)
    return DynamicShapeStrategy.PROGRAM_PER_SHAPE if fixed else DynamicShapeStrategy.OPEN


def is_fixed_for(capabilities: Capabilities, model: Model, sizes: Sizes) -> bool:
    """Return whether a device gets a model, or parts of it, with static shapes.

    Args:
        capabilities: the capabilities of the device.
        model: the model of the query.
        sizes: the caller's knowledge of dynamic sizes.
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
    """Return whether an axis other than the allowed ones is dynamic."""
    return allowed is not None and any(
        isinstance(size, Dimension)
        for type_ in _types(model)
        for axis, size in enumerate(type_.shape or ())
        if axis not in allowed
    )


def is_open(model: Model) -> bool:
    """Return whether some size or rank is unknown before a run."""
    return any(type_.static_shape is None for type_ in _types(model))


def _ranks_follow_from_sizes(model: Model) -> bool:
    """Return whether there are unknown ranks that known sizes would determine."""
    opening = [
        operation
        for operation in model.operations
        if any(output.type.shape is None for output in operation.outputs)
        and all(operand is None or operand.type.shape is not None for operand in operation.inputs)
    ]
    known_ranks = all(operand.type.shape is not None for operand in model.inputs.values())
    return (
        bool(opening)
        and known_ranks
        and all(isinstance(operation, Operator) for operation in opening)
        and not any(map(is_data_dependent, model.operations))
    )


def _has_data_dependent_sizes(segment: Model) -> bool:
    """Return whether the only unknown sizes are those that depend on data."""
    return all(map(is_data_dependent, segment.operations)) and not any(
        operand.type.static_shape is None for operand in segment.inputs.values()
    )


def _types(model: Model) -> Iterator[TensorType]:
    """Return the tensor types of a model."""
    for operands in (model.inputs.values(), *(o.outputs for o in model.operations)):
        for operand in operands:
            if operand.type.element_type is not ElementType.OBJECT:
                yield operand.type
