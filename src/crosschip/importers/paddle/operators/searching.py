"""Operators that search for elements: maxima, sorted, unique and nonzero elements."""

from __future__ import annotations

from collections.abc import Callable

from crosschip.importers.paddle.axes import make_along_axis
from crosschip.importers.paddle.context import Context, imports
from crosschip.ir import ElementType, ModelError, Operand, UnsupportedError
from crosschip.ops import Operator
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.layout import Reshape, Squeeze, Transpose
from crosschip.ops.standard.searching import ArgMax, ArgMin, NonZero, SearchSorted, TopK, Unique
from crosschip.ops.standard.slicing import Slice

_EXTREMES: dict[str, type[Operator]] = {"arg_max": ArgMax, "arg_min": ArgMin}


def _extreme(operator: type[Operator]) -> Callable[[Context], None]:
    def find(op: Context) -> None:
        x, keepdim = op.input(), op.flag("keepdims", False)
        dtype = op.element_type("dtype") or ElementType.INT64
        if not op.flag("flatten", False):
            x = op.add(Reshape, x, (1,)) if x.type.shape == () else x
            op.make(operator, x, op.integer("axis", -1), keepdim=keepdim, dtype=dtype)
            return
        index = op.add(operator, op.add(Reshape, x, (-1,)), 0, keepdim=False, dtype=dtype)
        op.make(Reshape, index, (1,) * op.rank(x) if keepdim else ())

    return find


for _name, _operator in _EXTREMES.items():
    imports(_name)(_extreme(_operator))


@imports("top_k", "top_k_v2")
def top_k(op: Context) -> None:
    make_along_axis(
        op,
        TopK,
        op.input(),
        op.integer_or_tensor("k", 1, "K"),
        axis=op.integer("axis", -1),
        largest=op.flag("largest", True),
        sorted=op.flag("sorted", True),
        return_indices_dtype=ElementType.INT64,
        outputs=("Out", "Indices"),
    )


@imports("argsort")
def argsort(op: Context) -> None:
    """Import `argsort`: the sorted elements of an axis, and their indices."""
    x, axis = op.input(), op.integer("axis", -1)
    make_along_axis(
        op,
        TopK,
        x,
        _size(op, x, axis),
        axis=axis,
        largest=op.flag("descending", False),
        sorted=True,
        return_indices_dtype=ElementType.INT64,
        outputs=("Out", "Indices"),
    )


def _size(op: Context, x: Operand, axis: int) -> int | Operand:
    shape = x.type.shape or (1,)
    if not -len(shape) <= axis < len(shape):
        raise ModelError(f"axis: {axis} is not an axis of {x.type}")
    size = shape[axis]
    if isinstance(size, int):
        return size
    axis %= len(shape)
    return op.add(Slice, op.add(ShapeOf, x), (0,), (axis,), (axis + 1,))


@imports("unique")
def unique(op: Context) -> None:
    """Import `unique`: elements in the order of first occurrence; sorted if `is_sorted`."""
    axes = op.integers("axis", ())
    if len(axes) > 1:
        raise UnsupportedError(f"axis: {list(axes)} are several axes; only one is expressed")
    _make_unique(
        op,
        ("Out", "Indices", "Index", "Counts"),
        axis=axes[0] if axes else None,
        is_sorted=op.flag("is_sorted", False),
    )


@imports("unique_with_counts")
def unique_with_counts(op: Context) -> None:
    _make_unique(op, ("Out", "", "Index", "Count"), axis=None, is_sorted=False)


def _make_unique(op: Context, outputs: tuple[str, ...], axis: int | None, is_sorted: bool) -> None:
    """Set the outputs: the values, and those of indices, inverse and counts that are present."""
    x, dtype = op.input(), op.element_type("dtype") or ElementType.INT64
    # The older form, which does not sort, has no axis.
    results = op.add_all(Unique, x, axis=axis if is_sorted else None, sorted=is_sorted)
    op.define(results[0], outputs[0])
    for output, operand in zip(outputs[1:], results[1:], strict=True):
        if output and op.count(output):
            if output == "Index" and x.type.shape == () and not is_sorted:
                operand = op.add(Reshape, operand, ())
            op.define(op.as_type(operand, dtype), output)


@imports("where_index")
def where_index(op: Context) -> None:
    """Import `where_index`: the indices of the nonzero elements [count, rank]."""
    op.make(Transpose, op.add(NonZero, op.input("Condition")), (1, 0))


@imports("kthvalue")
def kthvalue(op: Context) -> None:
    """Import `kthvalue`: the k-th smallest element of an axis, and its index."""
    x, axis, k = op.input(), op.integer("axis", -1), op.integer("k", 1)
    if k < 1:
        raise ModelError(f"k: {k} is not positive")
    smallest = op.add_all(TopK, x, k, axis=axis, largest=False, sorted=True)
    for part, output in zip(smallest, ("Out", "Indices"), strict=True):
        last = op.add(Slice, part, (axis,), (k - 1,), (k,))
        op.define(last if op.flag("keepdim", False) else op.add(Squeeze, last, (axis,)), output)


@imports("searchsorted")
def searchsorted(op: Context) -> None:
    sequence, values = op.input("SortedSequence"), op.input("Values")
    dtype = ElementType.INT32 if op.flag("out_int32", False) else ElementType.INT64
    op.make(SearchSorted, sequence, values, op.flag("right", False), dtype)
