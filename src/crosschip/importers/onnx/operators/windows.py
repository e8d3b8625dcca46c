"""What convolutions and poolings share: how their attributes say where windows lie on an image.

Images have one, two or three axes; standard operators know two. What has one gets another one of
size 1; what has three is computed plane by plane.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from crosschip.importers.onnx.node import Node, only
from crosschip.ir import Dim, ModelError, Operand, UnsupportedError, unknown
from crosschip.ops.definition.windows import AutoPad, extent

_AUTO_PADS = {
    "NOTSET": AutoPad.NONE,
    "VALID": AutoPad.VALID,
    "SAME_UPPER": AutoPad.SAME,
    "SAME_LOWER": AutoPad.SAME_LOWER,
}

Numbers = tuple[int, ...]


class Windows(NamedTuple):
    """Sliding windows; a number an axis of the image.

    Attributes:
        auto_pad: how much the image is padded.
        before: the padding in front, where `auto_pad` is `NONE`.
        after: the padding at the end.
        kernel: how many elements a window has; `None` if the model leaves that open.
        strides: how far it is from one window to the next.
        dilations: how far it is from one element of a window to the next.
    """

    auto_pad: AutoPad
    before: Numbers
    after: Numbers
    kernel: Numbers | None
    strides: Numbers
    dilations: Numbers

    @property
    def rank(self) -> int:
        """How many axes the image has."""
        return len(self.strides)

    @property
    def known_kernel(self) -> Numbers:
        """The size of the windows.

        Raises:
            UnsupportedError: it is not known.
        """
        if self.kernel is None:
            raise UnsupportedError("padding that depends on the filter needs one of fixed size")
        return self.kernel

    @property
    def spans(self) -> Numbers:
        """How many pixels a dilated window covers."""
        pairs = zip(self.known_kernel, self.dilations, strict=True)
        return tuple(extent(size, dilation) for size, dilation in pairs)

    def of(self, *axes: int) -> Windows:
        """The windows on some axes of the image only."""

        def picked(numbers: Numbers) -> Numbers:
            return tuple(numbers[axis] for axis in axes)

        return Windows(
            self.auto_pad,
            picked(self.before),
            picked(self.after),
            None if self.kernel is None else picked(self.kernel),
            picked(self.strides),
            picked(self.dilations),
        )

    def flat(self) -> Windows:
        """Windows on an image of one axis as those on one of two, the first of size 1."""
        return _POINT._replace(auto_pad=self.auto_pad).beside(self)

    def upright(self) -> Windows:
        """Windows on an image of one axis as those on one of two that do not widen the second."""
        return self.beside(_POINT)

    def beside(self, other: Windows) -> Windows:
        """The windows on the axes of both images."""
        kernel = None
        if self.kernel is not None and other.kernel is not None:
            kernel = (*self.kernel, *other.kernel)
        return Windows(
            self.auto_pad,
            (*self.before, *other.before),
            (*self.after, *other.after),
            kernel,
            (*self.strides, *other.strides),
            (*self.dilations, *other.dilations),
        )

    def rounded_up(self, image: Sequence[int]) -> Windows:
        """The windows that `ceil_mode` asks for, by more padding at the end."""
        after = []
        for axis, size in enumerate(image):
            span, stride, before = self.spans[axis], self.strides[axis], self.before[axis]
            last = -(-(size + before + self.after[axis] - span) // stride)
            if last * stride >= size + before:
                last -= 1
            after.append(max(0, last * stride + span - size - before))
        return self._replace(after=tuple(after))

    def explicit(self, image: Sequence[Dim]) -> Windows:
        """The same windows with the padding in numbers.

        Raises:
            UnsupportedError: it depends on a size that is not known.
        """
        if self.auto_pad is AutoPad.NONE:
            return self
        before, after = [0] * self.rank, [0] * self.rank
        if self.auto_pad.keeps_size:
            for axis, size in enumerate(image):
                total = _same_padding(size, self.spans[axis], self.strides[axis])
                before[axis], after[axis] = self.auto_pad.divided(total)
        return self._replace(auto_pad=AutoPad.NONE, before=tuple(before), after=tuple(after))

    def arguments(self) -> dict[str, object]:
        """The arguments of a standard operator, for an image of two axes."""
        (top, left), (bottom, right) = self.before, self.after
        return {
            "auto_pad": self.auto_pad,
            "pads": (top, bottom, left, right),
            "strides": self.strides,
            "dilations": self.dilations,
        }


_POINT = Windows(AutoPad.NONE, (0,), (0,), (1,), (1,), (1,))
"""Windows of one pixel each."""


def windows_of(node: Node, rank: int, kernel: Numbers | None) -> Windows:
    """The windows of a node on images of so many axes."""
    mode = _AUTO_PADS[only("auto_pad", node.text("auto_pad", "NOTSET"), *_AUTO_PADS)]
    pads = node.integers("pads", (0,) * 2 * rank)
    if mode is AutoPad.VALID:
        pads = (0,) * 2 * rank
    if len(pads) != 2 * rank or min(pads) < 0:
        raise ModelError(f"pads {list(pads)} are not {2 * rank} numbers from 0 up")
    strides = positive("strides", node.integers("strides", (1,) * rank), rank)
    dilations = positive("dilations", node.integers("dilations", (1,) * rank), rank)
    return Windows(mode, pads[:rank], pads[rank:], kernel, strides, dilations)


def image_of(operand: Operand, rank: int) -> Sequence[Dim]:
    """The sizes of an operand's image, which must have so many axes.

    Raises:
        UnsupportedError: there is no operator for as many.
        ModelError: it has another number.
    """
    if not 1 <= rank <= 3:
        raise UnsupportedError(f"an image has 1 to 3 axes, not {rank}")
    shape = operand.type.shape
    if shape is None:
        return tuple(unknown() for _ in range(rank))
    if len(shape) != rank + 2:
        raise ModelError(f"input 0 has {len(shape)} axes, but must have {rank + 2}")
    return shape[2:]


def kernel_of(node: Node, filter: Operand) -> tuple[int, Numbers | None]:
    """How many axes a filter's windows have, and their size; `kernel_shape` may repeat it."""
    declared = node.optional_integers("kernel_shape")
    shape = filter.type.shape
    if shape is None:
        if declared is None:
            raise UnsupportedError("the number of axes of the filter must be known")
        return len(declared), positive("kernel_shape", declared, len(declared))
    rank = len(shape) - 2
    sizes = tuple(size for size in shape[2:] if isinstance(size, int))
    if len(sizes) != rank:
        return rank, None if declared is None else positive("kernel_shape", declared, rank)
    if declared is not None and declared != sizes:
        raise ModelError(f"kernel_shape is {list(declared)}, but the filter's {list(sizes)}")
    return rank, positive("filter", sizes, rank)


def positive(name: str, numbers: Sequence[int], count: int) -> Numbers:
    """The numbers for all axes; `ModelError` if they are not as many, or one is not positive."""
    if len(numbers) != count or min(numbers, default=0) < 1:
        raise ModelError(f"{name} {list(numbers)} are not {count} numbers from 1 up")
    return tuple(numbers)


def _same_padding(size: Dim, span: int, stride: int) -> int:
    """So much padding that there are `ceil(size / stride)` windows."""
    if stride == 1:
        return span - 1
    if not isinstance(size, int):
        raise UnsupportedError("auto_pad SAME with a stride needs an image of fixed sizes")
    return max(0, (-(-size // stride) - 1) * stride + span - size)
