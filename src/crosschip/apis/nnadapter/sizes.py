"""Sizes of inputs that a program leaves open, with the shapes that it allows for them."""

from __future__ import annotations

from collections.abc import Sequence

from crosschip.apis.nnadapter.enumerations import NNADAPTER_UNKNOWN
from crosschip.apis.nnadapter.graph import NNAdapterOperand
from crosschip.apis.nnadapter.results import misshapen
from crosschip.ir import Dim, symbol


class OpenSizes:
    """The open sizes of a model's inputs.

    Shapes are allowed together: the first of each input, the second of each, and so on. So two
    sizes that are equal in each of them are one size, and one that is always the same is known.

    Args:
        inputs: the inputs.

    Raises:
        Failure: inputs differ in how many shapes they allow.
    """

    def __init__(self, inputs: Sequence[NNAdapterOperand]) -> None:
        counts = {operand.type.dimensions.dynamic_count for operand in inputs} - {0}
        if len(counts) > 1:
            raise misshapen(f"inputs allow different numbers of shapes: {sorted(counts)}")
        self._count = max(counts, default=0)
        self._names: dict[tuple[int, ...], str] = {}
        self._by_axis: dict[tuple[NNAdapterOperand, int], Dim] = {}
        for operand in inputs:
            for axis, size in enumerate(operand.type.dimensions.data):
                if size == NNADAPTER_UNKNOWN:
                    self._by_axis[operand, axis] = self._named(operand, axis)

    def of(self, operand: NNAdapterOperand, axis: int) -> Dim:
        """The size of an axis; that of another operand than an input stands for itself."""
        return self._by_axis.get((operand, axis), symbol(f"{operand.name}_{axis}"))

    @property
    def ranges(self) -> dict[str, tuple[int, int]]:
        """The least and the greatest value of each size that shapes are allowed for, by name."""
        return {name: (min(values), max(values)) for values, name in self._names.items()}

    @property
    def profiles(self) -> tuple[dict[str, int], ...]:
        """The values of these sizes in each of the shapes, by name."""
        if not self._names:
            return ()
        return tuple(
            {name: values[index] for values, name in self._names.items()}
            for index in range(self._count)
        )

    def _named(self, operand: NNAdapterOperand, axis: int) -> Dim:
        shapes = operand.type.dimensions.dynamic_data
        if not shapes:
            return symbol(f"{operand.name}_{axis}")
        values = tuple(shape[axis] for shape in shapes)
        if len(set(values)) == 1:
            return values[0]
        return symbol(self._names.setdefault(values, f"{operand.name}_{axis}"))
