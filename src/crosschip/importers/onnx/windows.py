"""The windows of convolutions and poolings of images with one to three axes, from attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain

from crosschip.importers.facts import rank_of
from crosschip.importers.onnx.node import Node, only
from crosschip.ir import Dim, ModelError, Operand, UnsupportedError, unknown
from crosschip.ops.definition.operator import UnknownRank
from crosschip.ops.definition.windows import AutoPad, Windows
from crosschip.ops.standard.layout import Transpose

_AUTO_PADS = {
    "NOTSET": AutoPad.NONE,
    "VALID": AutoPad.VALID,
    "SAME_UPPER": AutoPad.SAME,
    "SAME_LOWER": AutoPad.SAME_LOWER,
}

Numbers = tuple[int, ...]


def channels_last(node: Node, image: Operand, compute: Callable[[Operand], Operand]) -> Operand:
    """Apply a computation on NC… images to an image whose channels are the last axis."""
    rank = rank_of(image)
    transposed = node.add(Transpose, image, (0, rank - 1, *range(1, rank - 1)))
    return node.add(Transpose, compute(transposed), (0, *range(2, rank), 1))


def explicit(windows: Windows, image: Sequence[Dim]) -> Windows:
    """Return the windows with explicit padding.

    Raises:
        UnsupportedError: the padding depends on an unknown size.
    """
    if windows.auto_pad.keeps_size:
        spans_of(windows)
    try:
        return windows.explicit(image)
    except UnknownRank:
        raise UnsupportedError(
            "auto_pad SAME with a stride needs an image of fixed sizes"
        ) from None


def spans_of(windows: Windows) -> Numbers:
    """Return the number of pixels that a dilated window covers on each axis.

    Raises:
        UnsupportedError: it is unknown.
    """
    try:
        return windows.spans
    except UnknownRank:
        raise UnsupportedError(
            "padding that depends on the filter needs one of fixed size"
        ) from None


def arguments(windows: Windows) -> dict[str, object]:
    """Return the windows as arguments of a standard operator."""
    return {
        "auto_pad": windows.auto_pad,
        "pads": windows.pads,
        "strides": windows.strides,
        "dilations": windows.dilations,
    }


def windows_of(node: Node, kernel: Sequence[Dim]) -> Windows:
    """Return the windows of a node for a kernel size."""
    rank = len(kernel)
    # Some operators with windows have no auto_pad.
    mode = _AUTO_PADS[only("auto_pad", node.text("auto_pad", "NOTSET"), *_AUTO_PADS)]
    pads = node.integers("pads", (0,) * 2 * rank)
    if mode is AutoPad.VALID:
        pads = (0,) * 2 * rank
    if len(pads) != 2 * rank or min(pads) < 0:
        raise ModelError(f"pads {list(pads)} are not {2 * rank} numbers from 0 up")
    strides = positive("strides", node.integers("strides", (1,) * rank), rank)
    dilations = positive("dilations", node.integers("dilations", (1,) * rank), rank)
    sides = zip(pads[:rank], pads[rank:], strict=True)
    return Windows(kernel, strides, dilations, mode, tuple(chain.from_iterable(sides)))


def image_of(operand: Operand, rank: int) -> Sequence[Dim]:
    """Return the spatial sizes of an operand, which must have `rank` spatial axes.

    Raises:
        UnsupportedError: there is no operator for this rank.
        ModelError: the operand has another rank.
    """
    if not 1 <= rank <= 3:
        raise UnsupportedError(f"an image has 1 to 3 axes, not {rank}")
    shape = operand.type.shape
    if shape is None:
        return tuple(unknown() for _ in range(rank))
    if len(shape) != rank + 2:
        raise ModelError(f"input 0 has {len(shape)} axes, but must have {rank + 2}")
    return shape[2:]


def kernel_of(node: Node, filter: Operand) -> Sequence[Dim]:
    """Return the kernel size of a filter as far as known; `kernel_shape` may repeat it."""
    declared = node.optional_integers("kernel_shape")
    shape = filter.type.shape
    if shape is None:
        if declared is None:
            raise UnsupportedError("the number of axes of the filter must be known")
        return positive("kernel_shape", declared, len(declared))
    rank = len(shape) - 2
    sizes = tuple(size for size in shape[2:] if isinstance(size, int))
    if len(sizes) != rank:
        return shape[2:] if declared is None else positive("kernel_shape", declared, rank)
    if declared is not None and declared != sizes:
        raise ModelError(f"kernel_shape is {list(declared)}, but the filter's {list(sizes)}")
    return positive("filter", sizes, rank)


def positive(name: str, numbers: Sequence[int], count: int) -> Numbers:
    """Return a tuple of `count` positive numbers, or raise `ModelError`."""
    if len(numbers) != count or min(numbers, default=0) < 1:
        raise ModelError(f"{name} {list(numbers)} are not {count} numbers from 1 up")
    return tuple(numbers)
