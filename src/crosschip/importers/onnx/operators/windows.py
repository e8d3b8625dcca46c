"""What convolutions and poolings share: how their attributes say where windows lie on an image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from crosschip.importers.onnx.node import Node, only
from crosschip.ir import Dim, ModelError, Operand, UnsupportedError, unknown
from crosschip.ops.windows import AutoPad, extent

_AUTO_PADS = {
    "NOTSET": AutoPad.NONE,
    "VALID": AutoPad.VALID,
    "SAME_UPPER": AutoPad.SAME,
    "SAME_LOWER": AutoPad.SAME,
}

Pair = tuple[int, int]
Pads = tuple[int, int, int, int]
"""Top, bottom, left, right, as standard operators have them."""


class Windows(NamedTuple):
    """The attributes of sliding windows.

    Attributes:
        mode: the automatic padding, as ONNX calls it.
        kernel: height and width; `None` if the model leaves them open.
    """

    mode: str
    pads: Pads
    kernel: Pair | None
    strides: Pair
    dilations: Pair

    @property
    def auto_pad(self) -> AutoPad:
        return _AUTO_PADS[self.mode]

    @property
    def spans(self) -> Pair:
        """How many pixels the dilated kernel covers.

        Raises:
            UnsupportedError: that is not known.
        """
        if self.kernel is None:
            raise UnsupportedError("padding that depends on the filter needs one of fixed size")
        return extent(self.kernel[0], self.dilations[0]), extent(self.kernel[1], self.dilations[1])


def windows_of(node: Node, kernel: Pair | None) -> Windows:
    """The windows of a node."""
    mode = only("auto_pad", node.text("auto_pad", "NOTSET"), *_AUTO_PADS)
    pads = node.integers("pads", (0, 0, 0, 0))
    if mode == "VALID":
        pads = (0, 0, 0, 0)
    if len(pads) != 4 or min(pads) < 0:
        raise ModelError(f"pads {list(pads)} are not 4 numbers from 0 up")
    top, left, bottom, right = pads
    strides = pair("strides", node.integers("strides", (1, 1)))
    dilations = pair("dilations", node.integers("dilations", (1, 1)))
    return Windows(mode, (top, bottom, left, right), kernel, strides, dilations)


def image_of(node: Node) -> Sequence[Dim]:
    """Height and width of the first input.

    Raises:
        UnsupportedError: it is not a batch of images.
    """
    shape = node[0].type.shape
    if shape is None:
        return unknown(), unknown()
    if len(shape) != 4:
        raise UnsupportedError(f"input 0 has {len(shape)} axes, but only images, with 4, can be")
    return shape[2:]


def kernel_of(node: Node, filter: Operand) -> Pair | None:
    """Height and width of a filter, if known; the attribute `kernel_shape` may repeat them."""
    declared = node.optional_integers("kernel_shape")
    shape = filter.type.static_shape
    if shape is None:
        return None if declared is None else pair("kernel_shape", declared)
    if declared is not None and declared != shape[2:]:
        raise ModelError(f"kernel_shape is {list(declared)}, but the filter's {list(shape[2:])}")
    return pair("filter", shape[2:])


def explicit(windows: Windows, image: Sequence[Dim]) -> Windows:
    """The same windows without `SAME_LOWER`, which no standard operator has.

    Raises:
        UnsupportedError: the padding depends on a size that is not known.
    """
    if windows.mode != "SAME_LOWER":
        return windows
    totals = [_same_padding(image[i], windows.spans[i], windows.strides[i]) for i in range(2)]
    return windows._replace(mode="NOTSET", pads=split_padding(totals, more_before=True))


def split_padding(totals: Sequence[int], *, more_before: bool) -> Pads:
    """Split the padding of height and width between the two sides of each; one gets an odd rest."""
    less, more = [total // 2 for total in totals], [-(-total // 2) for total in totals]
    before, after = (more, less) if more_before else (less, more)
    return before[0], after[0], before[1], after[1]


def pair(name: str, numbers: Sequence[int]) -> Pair:
    """The numbers for height and width; `ModelError` if there are not two positive ones."""
    if len(numbers) != 2 or min(numbers) < 1:
        raise ModelError(f"{name} {list(numbers)} are not 2 numbers from 1 up")
    return numbers[0], numbers[1]


def _same_padding(size: Dim, span: int, stride: int) -> int:
    """So much padding that there are `ceil(size / stride)` windows."""
    if stride == 1:
        return span - 1
    if not isinstance(size, int):
        raise UnsupportedError(
            "auto_pad SAME_LOWER with a stride needs an input of fixed height and width; export "
            "the model so, or with explicit pads"
        )
    return max(0, (-(-size // stride) - 1) * stride + span - size)
