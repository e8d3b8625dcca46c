"""Intersection over union, and suppression of boxes that overlap a better one."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from crosschip.devices.kits.stablehlo.graph import Value


def suppress(
    boxes: Value,
    scores: Value,
    candidates: Value,
    most: int,
    threshold: float,
    *,
    eta: float = 1.0,
    pixel: float = 0.0,
) -> tuple[Value, Value]:
    """Select the best boxes that do not overlap a better selected one.

    Args:
        boxes: the corners of each box, the lesser one first, [M, 4].
        scores: [M]; of equal scores, the first is better.
        candidates: whether each box may be selected, [M].
        most: the greatest number of selected boxes; neither it nor M is 0.
        threshold: the overlap above which a box is suppressed.
        eta: the factor of the threshold after each box, while it is above 0.5, if less than 1.
        pixel: the addend to a side, the difference of its coordinates.

    Returns:
        [most] indices, of which the first ones are valid, and their number.
    """
    indices = jnp.arange(boxes.shape[0])

    def eligible(state: tuple[Value, ...]) -> Value:
        remaining, covered, _, _, limit = state
        return remaining & ~(covered > limit.astype(covered.dtype))

    def goes_on(state: tuple[Value, ...]) -> Value:
        return (state[3] < most) & eligible(state).any()

    def keep(state: tuple[Value, ...]) -> tuple[Value, ...]:
        _, covered, selected, count, limit = state
        candidates_left = eligible(state)
        best = jnp.argmax(jnp.where(candidates_left, scores, -jnp.inf))
        best = jnp.where(candidates_left[best], best, jnp.argmax(candidates_left))
        covered = jnp.maximum(covered, _overlaps(boxes, boxes[best], pixel))
        shrinks = (eta < 1) & (limit > 0.5)
        limit = jnp.where(shrinks, limit * eta, limit)
        return (
            candidates_left & (indices != best),
            covered,
            selected.at[count].set(best),
            count + 1,
            limit,
        )

    nothing = jnp.full(indices.shape, -jnp.inf, boxes.dtype)
    selected = jnp.zeros(most, indices.dtype)
    first = candidates, nothing, selected, jnp.zeros((), indices.dtype), jnp.float64(threshold)
    _, _, selected, count, _ = lax.while_loop(goes_on, keep, first)
    return selected, count


def _overlaps(boxes: Value, box: Value, pixel: float) -> Value:
    """Return the intersection over union of each box with one box."""
    sides = jnp.minimum(boxes[:, 2:], box[2:]) - jnp.maximum(boxes[:, :2], box[:2])
    intersection = _area(sides, pixel)
    areas = _area(boxes[:, 2:] - boxes[:, :2], pixel)
    union = areas + _area(box[2:] - box[:2], pixel) - intersection
    overlaps = (intersection > 0) & (union > 0)
    return jnp.where(overlaps, intersection / jnp.where(overlaps, union, 1), 0)


def _area(sides: Value, pixel: Any) -> Value:
    return jnp.where((sides < 0).any(-1), 0, (sides + pixel).prod(-1))
