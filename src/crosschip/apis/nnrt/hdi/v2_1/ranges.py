"""The ranges of the open sizes of inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from crosschip.apis.nnrt.hdi.v1_0.interface import HdiError
from crosschip.apis.nnrt.hdi.v2_1.types import NNRT_ReturnCode
from crosschip.ir import DeviceError, Operand

Bounds = Sequence[Sequence[int]]
"""The smallest, or the greatest, sizes of each input."""


class Range(NamedTuple):
    """The values of a size.

    Attributes:
        name: of the input.
        place: the input's.
        axis: the size's.
        least: the smallest value.
        most: the greatest.
    """

    name: str
    place: int
    axis: int
    least: int
    most: int

    def check(self, size: int) -> None:
        """`HdiError` if a size is not in the range."""
        if not self.least <= size <= self.most:
            raise HdiError(
                NNRT_ReturnCode.NNRT_OUT_OF_DIMENTION_RANGES,
                f"input {self.name!r}: axis {self.axis} has the size {size}, but must have "
                f"{self.least} to {self.most}",
            )


def open_ranges(inputs: Mapping[str, Operand], least: Bounds, most: Bounds) -> Sequence[Range]:
    """Return the ranges of those sizes of a model's inputs that are open.

    Raises:
        DeviceError: there is not a range for each size.
        HdiError: a size that is known is not in its range.
    """
    ranks = [len(operand.type.shape or ()) for operand in inputs.values()]
    if not ranks == list(map(len, least)) == list(map(len, most)):
        raise DeviceError(
            f"the driver gives the ranges {least} to {most} for inputs of {ranks} sizes"
        )
    return list(_opened(inputs, least, most))


def _opened(inputs: Mapping[str, Operand], least: Bounds, most: Bounds) -> Iterator[Range]:
    for place, (name, operand) in enumerate(inputs.items()):
        for axis, size in enumerate(operand.type.shape or ()):
            range_ = Range(name, place, axis, least[place][axis], most[place][axis])
            if isinstance(size, int):
                range_.check(size)
            else:
                yield range_
