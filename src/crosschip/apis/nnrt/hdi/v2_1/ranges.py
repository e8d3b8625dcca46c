"""The ranges of the dynamic dimensions of inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from crosschip.apis.nnrt.hdi.v1_0.interface import HdiError
from crosschip.apis.nnrt.hdi.v2_1.types import NNRT_ReturnCode
from crosschip.ir import DeviceError, Operand

Bounds = Sequence[Sequence[int]]
"""The minimum, or the maximum, sizes of each input."""


class Range(NamedTuple):
    """The range of a dynamic dimension.

    Attributes:
        name: the input's name.
        position: the input's index.
        axis: the axis.
        least: the minimum.
        most: the maximum.
    """

    name: str
    position: int
    axis: int
    least: int
    most: int

    def check(self, size: int) -> None:
        """Raise `HdiError` if a size is out of range."""
        if not self.least <= size <= self.most:
            raise HdiError(
                NNRT_ReturnCode.NNRT_OUT_OF_DIMENTION_RANGES,
                f"input {self.name!r}: axis {self.axis} has the size {size}, but must have "
                f"{self.least} to {self.most}",
            )


def dynamic_ranges(
    inputs: Mapping[str, Operand], minimums: Bounds, maximums: Bounds
) -> Sequence[Range]:
    """Return the ranges of a model's dynamic input dimensions.

    Raises:
        DeviceError: the bounds do not match the inputs' ranks.
        HdiError: a static size is out of its range.
    """
    ranks = [len(operand.type.shape or ()) for operand in inputs.values()]
    if not ranks == list(map(len, minimums)) == list(map(len, maximums)):
        raise DeviceError(
            f"the driver gives the ranges {minimums} to {maximums} for inputs of {ranks} sizes"
        )
    return list(_ranges(inputs, minimums, maximums))


def _ranges(inputs: Mapping[str, Operand], minimums: Bounds, maximums: Bounds) -> Iterator[Range]:
    for index, (name, operand) in enumerate(inputs.items()):
        for axis, size in enumerate(operand.type.shape or ()):
            range_ = Range(name, index, axis, minimums[index][axis], maximums[index][axis])
            if isinstance(size, int):
                range_.check(size)
            else:
                yield range_
