"""Shape inference rules that operators share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from crosschip.ir.dimension import Dim, Dimension, Shape, is_minimum_of, unknown
from crosschip.ir.types import MAX_RANK


def normalize_axis(axis: int, rank: int, slot: str = "axis") -> int:
    """Return a non-negative axis; raise ValueError if it is not in `[-rank, rank)`."""
    if not -rank <= axis < rank:
        raise ValueError(f"{slot}: {axis} is not in [-{rank}, {rank})")
    return axis % rank


def normalize_axes(axes: Iterable[int], rank: int, slot: str = "axes") -> tuple[int, ...]:
    """Like `axis_in` for several axes; raise ValueError if one occurs twice."""
    indices = tuple(normalize_axis(axis, rank, slot) for axis in axes)
    if len(set(indices)) != len(indices):
        raise ValueError(f"{slot}: {list(axes)} names an axis twice")
    return indices


def unknown_sizes(count: int, slot: str = "shape") -> Shape:
    """Return a shape of unknown sizes; raise ValueError if the rank exceeds the limit."""
    if count > MAX_RANK:
        raise ValueError(f"{slot}: has {count} sizes, but a tensor has at most {MAX_RANK}")
    return tuple(unknown() for _ in range(count))


def broadcast(*shapes: Shape, slot: str = "input1") -> Shape:
    """Return the shape of NumPy broadcasting; raise ValueError if the shapes are incompatible."""
    if shapes.count(shapes[0]) == len(shapes):
        return shapes[0]
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(_broadcast_axis(sizes, shapes, slot) for sizes in zip(*padded, strict=True))


def require_rank(shape: Shape, rank: int, slot: str) -> Shape:
    """Return the shape; raise ValueError unless it has the rank."""
    if len(shape) != rank:
        raise ValueError(f"{slot}: has {len(shape)} axes, but must have {rank}")
    return shape


def unify(a: Dim, b: Dim, what: str) -> Dim:
    """Return the common value of two sizes; raise ValueError if they are known to differ."""
    if isinstance(a, int) and isinstance(b, int) and a != b:
        raise ValueError(f"{what}: {a} and {b} differ")
    return a if isinstance(a, int) else b


def window_count(size: Dim, window: int, stride: int, *, ceil: bool = False) -> Dim:
    """Return the number of windows in a padded size; raise ValueError if none fits."""
    if stride < 1:
        raise ValueError(f"strides: {stride} is not positive")
    free = size - window
    if isinstance(free, int) and free < 0:
        raise ValueError(f"input: {size} with padding is smaller than the window of {window}")
    return (free + (stride - 1 if ceil else 0)) // stride + 1


def _either(a: Dim, b: Dim) -> Dim:
    """Return the broadcast size of two dynamic dimensions.

    Valid sizes are equal, or one is 1. Broadcasting a size and its minimum with a number above 1
    gives the size: if one of the two is 1, so is the other.
    """
    if is_minimum_of(a, b):
        return b
    return a if is_minimum_of(b, a) else unknown()


def _broadcast_axis(sizes: Sequence[Dim], shapes: Sequence[Shape], slot: str) -> Dim:
    result: Dim = 1
    for size in sizes:
        if size == 1 or size == result:
            continue
        if result == 1:
            result = size
        elif isinstance(size, int) and isinstance(result, int):
            texts = ", ".join(f"[{', '.join(map(str, shape))}]" for shape in shapes)
            raise ValueError(f"{slot}: shapes {texts} do not broadcast: {result} meets {size}")
        elif isinstance(result, Dimension):
            result = size if isinstance(size, int) else _either(result, size)
    return result
