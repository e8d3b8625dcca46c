"""The converter table, and the helpers that several converters share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from crosschip.devices.kits.stablehlo.graph import ChannelsLast, Graph, Turned, Value, Widened
from crosschip.devices.kits.stablehlo.narrow import as_type
from crosschip.hal import Converters, Refusal
from crosschip.ir import Builder, ElementType, Operation
from crosschip.ir.types import ALL_TYPES
from crosschip.ops import Operator
from crosschip.ops.definition.slots import Fuse

converters = Converters[Graph, Value](ALL_TYPES, fuses=True)
_sizing: dict[type[Operation], frozenset[str]] = {}

Convert = Callable[[Graph, Any], Any]


def converts(
    *operators: type[Operator],
    types: Collection[ElementType] = ALL_TYPES,
    limit: Callable[[Any], Refusal | None] | None = None,
    sizing: Collection[str] = (),
    narrow: bool = False,
    pointwise: bool = False,
) -> Callable[[Convert], Convert]:
    """Decorate a function as the converter of operators with static shapes.

    The converter reads 16-bit floats as float32, in which operators compute, and its results are
    rounded; fused activations are applied to its results.

    Args:
        operators: the operators.
        types: the element types of their tensors.
        limit: returns a refusal for unsupported operations.
        sizing: the tensors, other than parameters, whose values determine sizes of results.
        narrow: whether the converter reads 16-bit floats as they are.
        pointwise: whether the operator is elementwise with NumPy broadcasting, so that the order of
            axes does not matter.
    """

    def register(function: Convert) -> Convert:
        for operator in operators:
            _sizing[operator] = frozenset(sizing)
            computed = [slot.name for slot in operator.slots if slot.parameter]
            decorate = converters.converts(operator, types=types, limit=limit, computed=computed)
            decorate(complete(function, narrow=narrow or operator.moves, pointwise=pointwise))
        return function

    return register


def sizing(operation: Operation) -> Collection[str]:
    """Return the tensors of an operation whose values determine sizes."""
    return _sizing.get(type(operation), ())


def decomposed(g: Graph, op: Operator) -> Sequence[Value]:
    """Convert to simpler operators, into which an operation of static shapes can be decomposed."""
    builder = Builder(prefix=f"{op.name}.")
    results = op.decomposition(builder)
    assert results is not None, f"{op.type} has a decomposition where sizes are known"
    for part in builder.operations:
        g.add(part)
    return [g[result] for result in results]


def same(function: Callable[..., Value]) -> Callable[[Graph, Operator], Value]:
    """Return a converter to a JAX function with the same operands and no attributes."""

    def convert(g: Graph, op: Operator) -> Value:
        return function(*(g[o] for slot, o in op.filled() if not slot.parameter))

    return convert


def bounded(value: Value, low: float, high: float) -> Value:
    """Clamp a value to bounds of any type; NaN stays NaN."""
    if low > -np.inf:
        value = jnp.maximum(value, as_element(low, value))
    return jnp.minimum(value, as_element(high, value)) if high < np.inf else value


def narrow_float(value: Value, element_type: ElementType, *, saturate: bool = True) -> Value:
    """Convert to floats of at most 8 bits, clamping numbers out of range if `saturate`."""
    limits = jnp.finfo(element_type.dtype)
    reals = value if value.dtype == jnp.float32 else value.astype(jnp.float64)
    if saturate:
        reals = bounded(reals, float(limits.min), float(limits.max))
    return reals.astype(element_type.dtype)


def as_element(number: float, like: Value) -> Value:
    """Return a scalar of a value's element type: the nearest integer, or a rounded float."""
    if like.dtype.kind in "iu":
        limits = np.iinfo(like.dtype)
        number = limits.min if number <= limits.min else min(number, limits.max)
        return jnp.asarray(np.array(int(number), like.dtype))
    with np.errstate(over="ignore"):
        return jnp.asarray(np.asarray(number).astype(like.dtype))


def shape_of(op: Operation, index: int = 0) -> tuple[int, ...]:
    """Return the static shape of an output."""
    shape = op.outputs[index].type.static_shape
    assert shape is not None, "all sizes are known"
    return shape


def complete(function: Convert, *, narrow: bool = False, pointwise: bool = False) -> Convert:
    """Add the order of axes, the rounding of narrow floats and the activation to a converter.

    See `converts` for the arguments.
    """

    def convert(g: Graph, op: Operator) -> Sequence[Value | ChannelsLast]:
        is_last = pointwise and _is_last(g, op)
        view = Turned(g, len(shape_of(op))) if is_last else g
        result = function(view if narrow else Widened(view), op)
        values = list(result) if isinstance(result, list | tuple) else [result]
        if op.fused is not Fuse.NONE and function is not decomposed:
            values[0] = _map(values[0], lambda value: bounded(value, *op.fused.bounds))
        rounded = [
            _map(value, partial(_as_type, dtype=output.type.element_type.dtype))
            for value, output in zip(values, op.outputs, strict=True)
        ]
        return [ChannelsLast(value) for value in rounded] if is_last else rounded

    return convert


def _is_last(g: Graph, op: Operator) -> bool:
    """Return whether an operation reads an image with the channels last, and outputs one."""
    ranks = {len(output.type.shape or ()) for output in op.outputs}
    return len(ranks) == 1 and any(
        g.is_last(operand) and len(operand.type.shape or ()) in ranks
        for slot, operand in op.filled()
        if not slot.parameter
    )


def _as_type(value: Value, dtype: np.dtype[Any]) -> Value:
    return as_type(jnp.asarray(value), dtype)


def _map(value: Value | ChannelsLast, function: Callable[[Value], Value]) -> Any:
    """Apply a function to a value, keeping its order of axes."""
    if isinstance(value, ChannelsLast):
        return ChannelsLast(function(value.value))
    return function(value)
