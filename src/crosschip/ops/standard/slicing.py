"""Operators that extract a box from a tensor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from crosschip.ir import Array, Builder, Dim, Operand, Shape, unknown
from crosschip.ir.dimension import is_natural, minimum
from crosschip.ops.definition.kinds import Layout
from crosschip.ops.definition.operator import UnknownRank, shape_of, shape_value_of
from crosschip.ops.definition.registry import operator
from crosschip.ops.definition.shape_values import fail_if
from crosschip.ops.definition.shapes import normalize_axes, normalize_axis
from crosschip.ops.definition.slots import ComputedParameter, integer, integers, optional_integers
from crosschip.ops.definition.windows import is_static
from crosschip.ops.standard.comparison import Less
from crosschip.ops.standard.creation import ShapeOf
from crosschip.ops.standard.layout import Squeeze, Unsqueeze


@operator("SLICE", core=True)
class Slice(Layout):
    """`input[starts[i]:ends[i]:steps[i]]` on each axis `axes[i]`, by Python's rules.

    By default, `axes` are the first ones, and `steps` are 1; a step of 0 is an error, and so is an
    axis that occurs twice. A negative axis counts from the last one. A negative start or end counts
    from the end of the axis; both are then clipped to the axis, so a slice may be empty. With a
    negative step, an end below `-2**30` means "to the first element".
    """

    __slots__ = ()
    axes = optional_integers()
    starts = integers()
    ends = integers()
    steps = optional_integers()

    def infer_shape(self) -> Shape:
        shape = list(shape_of(self.input))
        try:
            slices = self._slices(len(shape))
        except ComputedParameter:
            for axis, bounds in self._computed_slices(len(shape)).items():
                shape[axis] = unknown() if bounds is None else part_size(shape[axis], *bounds)
            return tuple(shape)
        for axis, part in slices.items():
            shape[axis] = slice_size(shape[axis], part)
        return tuple(shape)

    def _computed_slices(self, rank: int) -> Mapping[int, tuple[Dim, Dim] | None]:
        """Return starts and ends of the axes that may be sliced, if they follow from shapes."""
        unknown_bounds: Mapping[int, None] = dict.fromkeys(self._sliced_axes(rank))
        starts, ends = self.operand("starts"), self.operand("ends")
        if starts is None or ends is None:
            return unknown_bounds
        try:
            bounds = list(zip(shape_value_of(starts), shape_value_of(ends), strict=True))
            axes = range(len(bounds)) if self.axes is None else normalize_axes(self.axes, rank)
            if self.steps not in (None, (1,) * len(bounds)):
                return unknown_bounds
        except (ComputedParameter, UnknownRank):
            return unknown_bounds
        return dict(zip(axes, bounds, strict=True))

    def _sliced_axes(self, rank: int) -> Sequence[int]:
        """Return the axes that may be sliced, if starts and ends are computed at run time."""
        lists = [self.operand(slot) for slot in ("axes", "starts", "ends", "steps")]
        counts = {o.type.static_shape for o in lists if o is not None} - {None}
        if len(counts) > 1:
            raise ValueError("starts: axes, starts, ends and steps must be equally many")
        return normalize_axes(range(rank) if self.axes is None else self.axes, rank)

    def reference(self, input: Array) -> Array:
        slices = self._slices(input.ndim)
        return input[tuple(slices.get(axis, slice(None)) for axis in range(input.ndim))]

    def row_axis(self, axes: Sequence[int | None]) -> int | None:
        return None if axes[0] is None else self.moved_axis(axes[0], len(shape_of(self.input)))

    def moved_axis(self, axis: int, rank: int) -> int | None:
        axes = range(len(self.starts)) if self.axes is None else normalize_axes(self.axes, rank)
        return None if axis in axes else axis

    def _slices(self, rank: int) -> dict[int, slice]:
        axes, starts, ends, steps = self.axes, self.starts, self.ends, self.steps
        named = normalize_axes(range(len(starts)) if axes is None else axes, rank)
        strides = (1,) * len(starts) if steps is None else steps
        if not len(named) == len(starts) == len(ends) == len(strides):
            raise ValueError("starts: axes, starts, ends and steps must be equally many")
        if 0 in strides:
            raise ValueError("steps: 0 is not a step")
        return {
            axis: python_slice(start, end, step)
            for axis, start, end, step in zip(named, starts, ends, strides, strict=True)
        }


def python_slice(start: int, end: int, step: int) -> slice:
    """Return the slice with the operator's rules; an end below -2**30 means "to the first"."""
    return slice(start, None if step < 0 and end < -(2**30) else end, step)


def slice_size(size: Dim, part: slice) -> Dim:
    """Return the size of a slice of an axis; an unknown size if it cannot be derived."""
    if isinstance(size, int):
        return len(range(size)[part])
    if part.step != 1:
        return unknown()
    return part_size(size, part.start, part.stop)


def part_size(size: Dim, start: Dim, end: Dim) -> Dim:
    """Return the size of a slice with step 1; an unknown size if it cannot be derived."""
    first, last = _elements_before(size, start), _elements_before(size, end)
    if first is None or last is None:
        return unknown()
    return last - minimum(first, last)


def _elements_before(size: Dim, bound: Dim) -> Dim | None:
    """Return the number of elements before a bound, which may be negative; `None` if unknown."""
    if isinstance(bound, int) and bound >= 2**30:
        return size
    if is_natural(bound):
        return minimum(size, bound)
    return size - minimum(size, -bound) if is_natural(-bound) else None


_FAR = 2**31 - 1

_Bounds = tuple[int, int, int]

_Section = tuple[int | None, _Bounds | int]
"""An axis of the input (`None` for a new axis), and the slice or index taken of it."""


@operator("STRIDED_SLICE")
class StridedSlice(Layout):
    """Python's `input[begin[0]:end[0]:strides[0], …]`, with masks for other subscripts.

    `begin`, `end` and `strides` have one number per subscript. Bit `i` of a mask applies to
    subscript `i`. In `ellipsis_mask` it means `...`, all remaining axes (at most one; if there is
    none, it is implied at the end); in `new_axis_mask` a new axis of size 1; in `shrink_axis_mask`
    the index `begin[i]`, which removes the axis. The first of these masks with the bit applies.
    Otherwise the subscript is a slice, without begin if `begin_mask` has the bit, without end if
    `end_mask` has it.

    Negative numbers count from the end of the axis. A slice is clipped to the axis; an index out of
    range is an error, and so is a stride of 0. Source: TensorFlow's `strided_slice`.
    """

    __slots__ = ()
    begin = integers()
    end = integers()
    strides = integers()
    begin_mask = integer(0)
    end_mask = integer(0)
    ellipsis_mask = integer(0)
    new_axis_mask = integer(0)
    shrink_axis_mask = integer(0)

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        try:
            sections = self._sections(len(shape))
        except ComputedParameter as error:
            return self._unknown_sizes(len(shape), error)
        sizes: list[Dim] = []
        for axis, part in sections:
            if axis is None:
                sizes.append(1)
            elif isinstance(part, int):
                _check_index(part, shape[axis])
            else:
                sizes.append(slice_size(shape[axis], python_slice(*part)))
        return tuple(sizes)

    def _unknown_sizes(self, rank: int, error: ComputedParameter) -> Shape:
        """Return unknown sizes if the number of subscripts is known."""
        lengths = [self.operand(slot) for slot in ("begin", "end", "strides")]
        lengths_known = [
            o.type.static_shape for o in lengths if o is not None and o.type.static_shape
        ]
        if not lengths_known:
            raise error
        if len(set(lengths_known)) > 1:
            raise ValueError("begin: begin, end and strides must be equally many") from None
        ones = (1,) * lengths_known[0][0]
        sections = _sections(rank, ones, ones, ones, self._masks())
        return tuple(
            1 if axis is None else unknown()
            for axis, part in sections
            if axis is None or not isinstance(part, int)
        )

    def reference(self, input: Array) -> Array:
        index: list[slice | int | None] = []
        for axis, part in self._sections(input.ndim):
            if isinstance(part, int) and axis is not None:
                _check_index(part, input.shape[axis])
            subscript = part if isinstance(part, int) else python_slice(*part)
            index.append(None if axis is None else subscript)
        return input[tuple(index)]

    def decompose(self, b: Builder) -> Operand:
        if not any(self._masks().values()):
            begin, end = self.operand("begin"), self.operand("end")
            return b.add(Slice, self.input, None, begin, end, self.strides)
        sections = self._sections(len(shape_of(self.input)))
        axes = [axis for axis, _ in sections if axis is not None]
        bounds = [_bounds(part) for axis, part in sections if axis is not None]
        starts, ends, steps = zip(*bounds, strict=True) if bounds else ((), (), ())
        result = b.add(Slice, self.input, axes, starts, ends, steps)
        removed = [axis for axis, part in sections if axis is not None and isinstance(part, int)]
        if removed:
            result = b.add(Squeeze, result, removed)
        remaining = [axis for axis, part in sections if axis is None or not isinstance(part, int)]
        new = [position for position, axis in enumerate(remaining) if axis is None]
        return b.add(Unsqueeze, result, new) if new else result

    def _sections(self, rank: int) -> Sequence[_Section]:
        return _sections(rank, self.begin, self.end, self.strides, self._masks())

    def _masks(self) -> dict[str, int]:
        names = (slot.name for slot in self.slots if slot.name.endswith("_mask"))
        return {name: getattr(self, name) for name in names}


def _sections(
    rank: int,
    begin: Sequence[int],
    end: Sequence[int],
    strides: Sequence[int],
    masks: Mapping[str, int],
) -> Sequence[_Section]:
    """Return the section of each subscript; raise ValueError if parameters do not match."""
    count = len(begin)
    if not count == len(end) == len(strides):
        raise ValueError("begin: begin, end and strides must be equally many")

    def has(name: str, position: int) -> bool:
        return bool(masks[f"{name}_mask"] >> position & 1)

    ellipses = [position for position in range(count) if has("ellipsis", position)]
    if len(ellipses) > 1:
        raise ValueError(f"ellipsis_mask: {masks['ellipsis_mask']} has more than one bit")
    ellipsis = ellipses[0] if ellipses else count
    new = sum(has("new_axis", position) for position in range(count) if position != ellipsis)
    remaining = rank - (count - len(ellipses) - new)
    if remaining < 0:
        raise ValueError(f"begin: is for {rank - remaining} axes, but the input has {rank}")
    sections: list[_Section] = []
    axes = iter(range(rank))
    for position in range(max(count, ellipsis + 1)):
        if position == ellipsis:
            sections += [(next(axes), (0, _FAR, 1)) for _ in range(remaining)]
        elif has("new_axis", position):
            sections.append((None, 0))
        elif has("shrink_axis", position):
            sections.append((next(axes), begin[position]))
        else:
            step = strides[position]
            if step == 0:
                raise ValueError("strides: 0 is not a step")
            first, last = (0, _FAR) if step > 0 else (_FAR, -_FAR)
            start = first if has("begin", position) else begin[position]
            stop = last if has("end", position) else end[position]
            sections.append((next(axes), (start, stop, step)))
    return sections


def _check_index(index: int, size: Dim) -> None:
    if isinstance(size, int) and not -size <= index < size:
        raise ValueError(f"begin: {index} is not an index of an axis of size {size}")


def _bounds(part: _Bounds | int) -> _Bounds:
    """Return the slice that takes a part; an index takes one entry."""
    return (part, part + 1 or _FAR, 1) if isinstance(part, int) else part


@operator("CROP")
class Crop(Layout):
    """The box of the input that begins at `offset` and has the sizes `shape`.

    It crops `axis`, which counts from the last one if negative, and all later axes. `shape` has one
    size per cropped axis, or one per axis of the input, of which those of other axes are ignored.
    `offset` has one number per cropped axis, or one for all. The box must be inside the input.
    Source: Caffe's Crop layer.
    """

    __slots__ = ()
    shape = integers()
    axis = integer(2)
    offset = integers((0,))

    def infer_shape(self) -> Shape:
        shape = shape_of(self.input)
        axis, starts, ends = self._box(len(shape))
        for size, start, end in zip(shape[axis:], starts, ends, strict=True):
            if start < 0 or end < start or (isinstance(size, int) and end > size):
                raise ValueError(f"offset: the box from {start} to {end} is not in {size}")
        return (*shape[:axis], *(end - start for start, end in zip(starts, ends, strict=True)))

    def reference(self, input: Array) -> Array:
        axis, starts, ends = self._box(input.ndim)
        if any(end > size for size, end in zip(input.shape[axis:], ends, strict=True)):
            raise ValueError(f"offset: the box to {ends} is not in {input.shape[axis:]}")
        box = [*(slice(None),) * axis, *map(slice, starts, ends)]
        return input[tuple(box)]

    def decompose(self, b: Builder) -> Operand:
        rank = len(shape_of(self.input))
        axis, starts, ends = self._box(rank)
        first, last = (b.constant(np.array(bounds)) for bounds in (starts, ends))
        if not is_static(shape_of(self.input)[axis:]):
            sizes = b.add(Slice, b.add(ShapeOf, self.input), (0,), (axis,), (rank,))
            short = b.add(Less, sizes, last)
            first = fail_if(b, short, first)
        return b.add(Slice, self.input, range(axis, rank), first, last)

    def _box(self, rank: int) -> tuple[int, Sequence[int], Sequence[int]]:
        """Return the first cropped axis, and the start and end of the box from that axis on."""
        shape, first, offset = self.shape, normalize_axis(self.axis, rank), self.offset
        cropped = rank - first
        if len(shape) not in (cropped, rank):
            raise ValueError(f"shape: has {len(shape)} sizes, not {cropped} or {rank}")
        if len(offset) not in (cropped, 1):
            raise ValueError(f"offset: has {len(offset)} numbers, not {cropped} or 1")
        starts = list(offset) * (cropped if len(offset) == 1 else 1)
        ends = [start + size for start, size in zip(starts, shape[-cropped:], strict=True)]
        return first, starts, ends
