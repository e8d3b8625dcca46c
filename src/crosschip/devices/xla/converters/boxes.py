"""Overlaps of boxes, and the choice of those that do not overlap a better one."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax

from crosschip.devices.xla.graph import Value


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
    """The best boxes that do not overlap a better one of them, and how many there are.

    Args:
        boxes: two corners of each, the lesser one first, [M, 4].
        scores: [M]; of equal ones, the first is better.
        candidates: whether each is to be looked at, [M].
        most: how many are wanted at most; not 0, and neither is M.
        threshold: how much of an overlap is too much.
        eta: what that is multiplied by after each box, while it is more than 0.5, if less than 1.
        pixel: how much more than the difference of its coordinates a side is.

    Returns:
        [most] indices, of which only the first ones count, and their number.
    """
    places = jnp.arange(boxes.shape[0])

    def eligible(state: tuple[Value, ...]) -> Value:
        left, covered, _, _, limit = state
        return left & ~(covered > limit.astype(covered.dtype))

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
            candidates_left & (places != best),
            covered,
            selected.at[count].set(best),
            count + 1,
            limit,
        )

    nothing = jnp.full(places.shape, -jnp.inf, boxes.dtype)
    selected = jnp.zeros(most, places.dtype)
    first = candidates, nothing, selected, jnp.zeros((), places.dtype), jnp.float64(threshold)
    _, _, selected, count, _ = lax.while_loop(goes_on, keep, first)
    return selected, count


def _overlaps(boxes: Value, box: Value, pixel: float) -> Value:
    """The area that each box has in common with one, over the area of either."""
    sides = jnp.minimum(boxes[:, 2:], box[2:]) - jnp.maximum(boxes[:, :2], box[:2])
    common = _area(sides, pixel)
    own = _area(boxes[:, 2:] - boxes[:, :2], pixel)
    either = own + _area(box[2:] - box[:2], pixel) - common
    met = (common > 0) & (either > 0)
    return jnp.where(met, common / jnp.where(met, either, 1), 0)


def _area(sides: Value, pixel: Any) -> Value:
    return jnp.where((sides < 0).any(-1), 0, (sides + pixel).prod(-1))
